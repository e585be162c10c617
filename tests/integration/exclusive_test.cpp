// SPDX-License-Identifier: Apache-2.0
// The plain lock and the read-write lock under one name exclude each other, and each waits for the other.
#include "support/activity_log.h"
#include "support/integration.h"
#include "support/queue_fixture.h"

using namespace rlock::test;

namespace {

struct Invocation {
  const char* verb;
  Words options;
};

const std::vector<Invocation> invocations{
    {"run", {}}, {"run", {"-s"}}, {"run", {"-x"}}, {"flock", {}}, {"flock", {"-s"}}};

bool is_plain(const Invocation& invocation)
{
  return std::string(invocation.verb) == "run" && invocation.options.empty();
}

Process start(const RedisServer& server, const Invocation& invocation, const Words& more, const Words& job)
{
  Words words{invocation.verb, "-S", server.url()};
  words.insert(words.end(), invocation.options.begin(), invocation.options.end());
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"nightly"});
  if (std::string(invocation.verb) == "run") {
    words.insert(words.end() - 1, "-k");
    words.emplace_back("--");
  }
  words.insert(words.end(), job.begin(), job.end());
  return start_rlock(words);
}

std::string shown(const Invocation& invocation)
{
  return invocation.verb + (" " + (invocation.options.empty() ? "" : invocation.options.front()));
}

}  // namespace

TEST_CASE("exclusive: rlock run and rlock flock under one name wait for each other, and do not overlap")
{
  for (const Invocation& first : invocations) {
    for (const Invocation& second : invocations) {
      if (is_plain(first) == is_plain(second)) {
        continue;
      }
      CAPTURE(shown(first));
      CAPTURE(shown(second));
      const RedisServer server;
      ActivityLog activity;
      Process holder = start(server, first, {}, activity.short_job("first", 500));
      wait_until([&] { return is_held(server, "nightly"); }, "it is held", 30s);

      Process refused = start(server, second, {"-n"}, {"true"});
      CHECK(refused.wait(30s).code == (std::string(second.verb) == "flock" ? 1 : 75));

      Process waiter = start(server, second, {"-w", "60"}, activity.short_job("second", 10));
      CHECK(holder.wait(30s).code == 0);
      CHECK(waiter.wait(60s).code == 0);
      CHECK(overlap(activity.jobs()) == "");
      CHECK(activity.jobs().size() == 2);
    }
  }
}

SERVER_CASE("exclusive: a caller that cannot wait for another kind long enough ends with 75 and names the holder")
{
  const Process holder = start(server, {"run", {}}, {}, {"sleep", "100"});
  wait_until([&] { return is_held(server, "nightly"); }, "it is held", 30s);
  Process late = start(server, {"run", {"-x"}}, {"-w", "300ms"}, {"true"});
  expect_end(late, exited(75), {err_has("sleep 100")}, 30s);
}
