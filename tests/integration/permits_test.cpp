// SPDX-License-Identifier: Apache-2.0
// Permits with real processes: never more holders than permits, never fewer, in order, also after kills.
#include "support/activity_log.h"
#include "support/crowd.h"
#include "support/foreign_kinds.h"
#include "support/integration.h"
#include "support/presences.h"
#include "support/queue_fixture.h"
#include "support/topology.h"

#include "lock/store.h"
#include "stores/open.h"

using namespace rlock::test;

namespace {

constexpr const char* expiries = "{k}:timeout";

std::int64_t queue_length(const RedisServer& server)
{
  return as_int(server.command({"ZCARD", "rlock:queue-permits:{k}"}));
}

// How many permits are held while there is a waiter, at one moment; -1: there is no waiter.
int held_while_some_wait(LockStore& store)
{
  const BootClock clock;
  const auto state = store.inspect(*LockName::parse("k"), {.deadline = clock.now() + 10s, .stop = StopToken::never()});
  REQUIRE_MESSAGE(state, state.error().text);
  return state->waiting.empty() ? -1 : static_cast<int>(state->holders.size());
}

// The greatest number of holders at a time, by a file of "+" and "-".
int most_at_once(const std::filesystem::path& log)
{
  int now = 0;
  int most = 0;
  for (const std::string& line : lines_of(text_of(log))) {
    now += line == "+" ? 1 : -1;
    most = std::max(most, now);
  }
  CHECK(now == 0);
  return most;
}

std::vector<std::string> until(const std::filesystem::path& file)
{
  return {"sh", "-c", "until [ -e " + file.string() + " ]; do sleep 0.02; done"};
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("permits: two hundred jobs over five: never more than five at once, never fewer while some wait")
{
  const int jobs = crowd_of(200);
  const QueueFixture queue;
  const auto dir = make_temp_dir("permits");
  const auto log = dir / "log";
  const std::string job =
      "cd " + dir.string() + "; echo + >> log; until [ -e go ]; do sleep 0.02; done; sleep 0.05; echo - >> log";
  std::vector<Process> crowd;
  for (int i = 0; i < jobs; ++i) {
    crowd.push_back(queue.start({"--permits", "5"}, {"sh", "-c", job}));
  }
  wait_until([&] { return queue_length(queue.server) == jobs - 5; }, "five are in and the others wait", 60s);
  if (ends_holds_with_clients()) {  // there all listen, and a release that finds nobody in front hands nothing over
    wait_until([&] { return listening(queue.server) >= static_cast<std::size_t>(jobs) - 5; }, "all that wait listen",
               60s);
  }
  const BootClock clock;
  const bool is_in_database = topology_kind() == TopologyKind::database;
  const auto store =
      open_store({.endpoints = {*parse_server(is_in_database ? queue.server.url() : queue.server.direct_url())}}, clock,
                 StopToken::never());
  REQUIRE(store);
  std::ofstream(dir / "go") << "now";
  int looks = 0;
  const auto over = [&] {
    return std::none_of(crowd.begin(), crowd.end(), [](Process& one) { return one.running(); });
  };
  wait_until(
      [&] {
        for (int i = 0; i < 20; ++i) {
          const int held = held_while_some_wait(**store);
          looks += held >= 0 ? 1 : 0;
          const bool may_be_free = far_waiters_may_sleep() && held < 5;
          CHECK_MESSAGE((held == -1 || held == 5 || may_be_free), held, " of 5 are held");
        }
        return over();
      },
      "all have run", 90s);
  expect_ends(crowd);
  CHECK(looks > jobs / 10);
  CHECK(most_at_once(log) == 5);
  CHECK(as_text(queue.server.command({"GET", "k"})) == "5");
  CHECK(as_int(queue.server.command({"EXISTS", expiries})) == 0);
}

QUEUE_CASE("permits: the permit of a killed holder goes to a waiter within its lease, while the others keep theirs")
{
  const ActivityLog activity;
  const auto dir = make_temp_dir("permits");
  Process other = queue.start({"--permits", "2", "--ttl", "3s"}, until(dir / "go"));
  Process victim = queue.start({"--permits", "2", "--ttl", "3s"}, activity.stubborn_tree("victim"));
  wait_until([&] { return activity.tree_beats("victim"); }, "the job's tree runs");
  wait_until([&] { return as_int(queue.server.command({"ZCARD", expiries})) == 2; }, "both are held");
  Process next = queue.start({"--permits", "2", "--ttl", "3s"}, activity.short_job("next", 60));
  wait_until([&] { return queue_length(queue.server) == 1; }, "one waits");
  victim.signal(SIGKILL);
  const std::int64_t struck = now_ns();
  CHECK(next.wait() == success);
  const auto jobs = activity.jobs();
  CHECK(overlap(jobs) == "");
  CHECK((jobs.at("next").first_ns - struck) / 1'000'000 < 3000 + 1000);  // the lease, and a second for a busy machine
  CHECK(other.running());
  std::ofstream(dir / "go") << "now";
  CHECK(other.wait() == success);
  CHECK(as_text(queue.server.command({"GET", "k"})) == "2");
}

QUEUE_CASE("permits: holders are not taken for foreign clients that wait")
{
  const auto dir = make_temp_dir("permits");
  std::vector<Process> holders;
  for (int i = 0; i < 3; ++i) {
    holders.push_back(queue.start({"--permits", "3"}, until(dir / "go")));
  }
  wait_until([&] { return listening(queue.server) == 3; }, "their watchdogs listen");
  CHECK(queue.server.command({"PUBSUB", "NUMSUB", "redisson_sc:{k}"}).elements.at(1).integer == 0);
  std::ofstream(dir / "go") << "now";
  expect_ends(holders);
}

QUEUE_CASE("permits: a request for another number is told both numbers, 78")
{
  const auto dir = make_temp_dir("permits");
  Process holder = queue.start({"--permits", "5"}, until(dir / "go"));
  wait_until([&] { return as_int(queue.server.command({"ZCARD", expiries})) == 1; }, "one is held");
  Process other = queue.start({"--permits", "3"}, {"true"});
  expect_end(other, exited(78), {err_has("are 5, not 3 (give --permits 5")});
  std::ofstream(dir / "go") << "now";
  CHECK(holder.wait() == success);
  Process later = queue.start({"--permits", "3"}, {"true"});
  CHECK(later.wait() == success);
}

QUEUE_CASE("permits: a permit that a foreign client releases goes to an rlock waiter, and the other way round")
{
  const ForeignPermits java(queue.server);
  const std::string permit = permit_bytes("0123456789abcdef0123456789abcdef");
  REQUIRE(java.set_permits(2));
  const auto dir = make_temp_dir("permits");
  Process rlock_holder = queue.start({"--permits", "2", "--ttl", "20s"}, until(dir / "go"));
  wait_until([&] { return as_int(queue.server.command({"ZCARD", expiries})) == 1; }, "one is held by us");
  REQUIRE(java.acquire(permit, 60'000) == "OK");
  Process waiter = queue.start({"--permits", "2"}, {"true"});
  const auto subscribers = [&] {
    return queue.server.command({"PUBSUB", "NUMSUB", "redisson_sc:{k}"}).elements.at(1).integer;
  };
  wait_until([&] { return subscribers() == 1; }, "the first waiter has subscribed to releases");
  const auto from = std::chrono::steady_clock::now();
  CHECK(java.release(permit) == 1);
  CHECK(waiter.wait() == success);
  CHECK(std::chrono::steady_clock::now() - from < 4s);

  REQUIRE(java.acquire(permit, 60'000) == "OK");
  CHECK(java.acquire(permit_bytes("ffffffffffffffffffffffffffffffff"), 1000).starts_with(":"));
  std::ofstream(dir / "go") << "now";
  CHECK(rlock_holder.wait() == success);
  CHECK(java.acquire(permit_bytes("ffffffffffffffffffffffffffffffff"), 1000) == "OK");
}

TEST_SUITE_END();
