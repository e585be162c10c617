// SPDX-License-Identifier: Apache-2.0
#include "run/acquire_all.h"

#include <doctest/doctest.h>

using namespace rlock;

namespace {

constexpr std::int64_t now = 1'790'000'192'000;

Busy busy()
{
  const HolderInfo info{.host = "web1.example.com",
                        .pid = 4711,
                        .user = "alice",
                        .command = "./job.sh --all of it",
                        .label = "nightly",
                        .since_ms = 1'790'000'000'000,
                        .lease = Millis{30'000},
                        .automatic = true};
  return {.ttl = Millis{21'000},
          .holder = Holder{.owner = Owner::of("u:1"), .count = 1, .info = info},
          .waiters_ahead = 4,
          .ticket = 7};
}

}  // namespace

TEST_CASE("waiting message: place, age, holder, ttl and job, in this order")
{
  CHECK(wait_text("stock", busy(), now, Millis{0}) ==
        "waiting for stock, place 5, held for 3m 12s by alice@web1.example.com (pid 4711), ttl 21s, running ./job.sh "
        "--all of it "
        "[nightly]");
  CHECK(wait_text("stock", busy(), now, Millis{20'000}).find(", ttl 1s, ") != std::string::npos);
  CHECK(wait_text("stock", busy(), now, Millis{21'000}).find("ttl") == std::string::npos);
}

TEST_CASE("waiting message: parts that are unknown are left out")
{
  Busy foreign = busy();
  foreign.holder->info.reset();
  CHECK(wait_text("k", foreign, now, Millis{0}) == "waiting for k, place 5, held by u:1, ttl 21s");
  foreign.ticket = 0;
  CHECK(wait_text("k", foreign, now, Millis{0}) == "waiting for k, held by u:1, ttl 21s");
  foreign.holder.reset();
  CHECK(wait_text("k", foreign, now, Millis{0}) == "waiting for k");
}
