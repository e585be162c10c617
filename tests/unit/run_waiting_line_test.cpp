// SPDX-License-Identifier: Apache-2.0
#include "run/wait_message.h"

#include "base/shown_time.h"

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

TEST_CASE("waiting message, busy message: of permits, how many are held, because no single holder is in the way")
{
  Busy full = busy();
  full.permits = 3;
  CHECK(wait_text("k", full, now, Millis{0})
            .starts_with("waiting for k, place 5, 3 of 3 permits are held, one for 3m 12s by alice@"));
  CHECK(busy_text("k", Millis{0}, full.holder, full.ttl, full.permits)
            .starts_with("k is busy, 3 of 3 permits are held, one by alice@"));
  CHECK(busy_text("k", Millis{0}, full.holder, full.ttl, 1).starts_with("k is busy, held by alice@"));
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

TEST_CASE("waiting message: a frozen lock names who has frozen it, until when, and why")
{
  Busy frozen = busy();
  frozen.ttl = Millis{3'600'000};
  frozen.holder->info->sudo_user = "ann";
  frozen.holder->info->freeze = "moving\nthe database";
  const std::string by = "frozen by ann as alice@web1.example.com until ";
  const std::string until = shown_minute(now + 3'600'000, now).value_or("?");
  CHECK(wait_text("k", frozen, now, Millis{0}) == "waiting for k, place 5, " + by + until + ": moving\\nthe database");
  const std::string soon = shown_minute(now + 3'600'000, now + 60'000).value_or("?");
  CHECK(wait_text("k", frozen, now + 60'000, Millis{60'000}).find(by + soon) != std::string::npos);
  const std::string text = busy_text("k", Millis{2000}, frozen.holder, frozen.ttl);
  CHECK(text.starts_with("k is busy after 2s, " + by));
  CHECK(busy_text("k", Millis{0}, busy().holder).find("frozen") == std::string::npos);
}

TEST_CASE("busy message: a freeze that was ended before it began names who ended it")
{
  const Replaced ended{.by = std::nullopt, .freeze_ended_by = "ann as root@web1 (pid 71): go\non"};
  CHECK(replaced_text("k", ended) == "k: the freeze was ended by ann as root@web1 (pid 71): go\\non");
  CHECK(replaced_text("k", {.by = std::nullopt, .freeze_ended_by = ""}) == "k: the freeze was ended");
}
