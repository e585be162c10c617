// SPDX-License-Identifier: Apache-2.0
// Five shards, each with its lock: each is used by one job at a time, and a waiter gets the first one that becomes free.
#include "support/activity_log.h"
#include "support/integration.h"
#include "support/slowness.h"
#include "support/topology.h"

using namespace rlock::test;

namespace {

constexpr int shards = 5;

std::string key(int shard) { return "stock:" + std::to_string(shard); }

std::vector<std::string> any_shard(const RedisServer& server, const std::vector<std::string>& options,
                                   const std::vector<std::string>& job)
{
  const Words any{"run", "-S", server.url(), "-k", "stock", "--shards", std::to_string(shards)};
  return rlock_argv(joined(any, with_job(options, job)));
}

// Takes the lock of a shard as a foreign client.
void take(const RedisServer& server, int shard)
{
  server.command({"HSET", key(shard), "somebody:1", "1"});
  server.command({"PEXPIRE", key(shard), "60000"});
}

// Releases it as a foreign client.
void release_all(const RedisServer& server, int shard)
{
  server.command({"DEL", key(shard)});
  server.command({"PUBLISH", "redisson_lock__channel:{" + key(shard) + "}", "0"});
}

std::int64_t in_line(const RedisServer& server, int shard)
{
  return as_int(server.command({"ZCARD", "rlock:queue:{" + key(shard) + "}"}));
}

bool stand_in_every_line(const RedisServer& server, int waiters)
{
  skip_on_quorum("a quorum has no queue");
  for (int shard = 0; shard < shards; ++shard) {
    if (in_line(server, shard) != waiters) {
      return false;
    }
  }
  return true;
}

// All queues are empty, and no waiter's record is left.
void check_lines_are_left(const RedisServer& server)
{
  for (int shard = 0; shard < shards; ++shard) {
    CAPTURE(shard);
    CHECK(in_line(server, shard) == 0);
    for (const std::string& entry : as_texts(server.command({"HKEYS", "rlock:waiters:{" + key(shard) + "}"}))) {
      CHECK(entry.starts_with("#"));  // of all waiters together
    }
  }
}

}  // namespace

TEST_SUITE_BEGIN("topology");

SERVER_CASE("shards: never two in one shard, yet as many at once as there are shards")
{
  const ActivityLog activity;
  std::vector<Process> crowd;
  for (int i = 0; i < 40; ++i) {
    // beats under a name that only the job can know
    crowd.emplace_back(any_shard(server, {}, activity.short_job("shard${RLOCK_SHARD}-" + std::to_string(i), 60)));
  }
  expect_ends(crowd, 100s * slowness);
  std::map<std::string, std::map<std::string, Interval>> by_shard;
  for (const auto& [name, interval] : activity.jobs()) {
    by_shard[name.substr(0, name.find('-'))].emplace(name, interval);
  }
  CHECK(by_shard.size() == shards);
  std::size_t jobs = 0;
  for (const auto& entry : by_shard) {
    const auto& its_jobs = entry.second;
    CAPTURE(entry.first);
    CHECK(overlap(its_jobs) == "");
    jobs += its_jobs.size();
  }
  CHECK(jobs == 40);
  CHECK(overlap(activity.jobs()) != "");
}

SERVER_CASE("shards: the job is told which one it has")
{
  for (int shard = 0; shard < 4; ++shard) {
    take(server, shard);
  }
  Process run(
      any_shard(server, {}, {"sh", "-c", "echo $RLOCK_SHARD $RLOCK_KEY; echo \"$RLOCK_HELD\" | cut -d ' ' -f 2"}));
  expect_end(run, success, {out_is("4 stock:4\nstock:4\n")});
}

TEST_CASE("shards: a waiter gets the first free shard, and leaves all queues")
{
  for (int freed = 0; freed < shards; ++freed) {
    CAPTURE(freed);
    const RedisServer server;
    for (int shard = 0; shard < shards; ++shard) {
      take(server, shard);
    }
    Process waiter(any_shard(server, {}, {"sh", "-c", "echo $RLOCK_SHARD"}));
    wait_until([&] { return stand_in_every_line(server, 1); }, "the waiter stands in every line");
    release_all(server, freed);
    expect_end(waiter, success, {out_is(std::to_string(freed) + "\n")});
    check_lines_are_left(server);
  }
}

SERVER_CASE("shards: all come free at once: the waiter takes one, the others are free for the next")
{
  for (int shard = 0; shard < shards; ++shard) {
    take(server, shard);
  }
  Process waiter(any_shard(server, {}, {"sleep", "100"}));
  wait_until([&] { return stand_in_every_line(server, 1); }, "the waiter stands in every line");
  for (int shard = 0; shard < shards; ++shard) {
    release_all(server, shard);
  }
  const auto held = [&] {
    std::int64_t count = 0;
    for (int shard = 0; shard < shards; ++shard) {
      count += as_int(server.command({"EXISTS", key(shard)}));
    }
    return count;
  };
  // The other locks become free before the waiter has left their queues.
  wait_until([&] { return held() == 1 && stand_in_every_line(server, 0); }, "one is held, and waited for is none");
  check_lines_are_left(server);
  std::vector<Process> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back(any_shard(server, {"-n"}, {"sleep", "100"}));
  }
  wait_until([&] { return held() == shards; }, "each has one");
  CHECK(Process(any_shard(server, {"-n"}, {"true"})).wait() == exited(75));
}

SERVER_CASE("shards: the shard of a killed holder is handed to the waiter before its lease is over")
{
  std::vector<Process> holders;
  for (int shard = 0; shard < shards; ++shard) {
    holders.emplace_back(any_shard(server, {"--ttl", "60s"}, {"sh", "-c", "echo $RLOCK_SHARD; exec sleep 100"}));
  }
  for (const Process& holder : holders) {
    wait_until([&] { return !holder.out().empty(); }, "each has a shard");
  }
  Process waiter(any_shard(server, {}, {"sh", "-c", "echo $RLOCK_SHARD"}));
  wait_until([&] { return stand_in_every_line(server, 1); }, "the waiter stands in every line");
  holders[3].signal(SIGKILL);
  expect_end(waiter, success, {out_is(holders[3].out())}, 20s);
}

SERVER_CASE("shards: -n, -w and a signal leave nothing behind")
{
  for (int shard = 0; shard < shards; ++shard) {
    take(server, shard);
  }
  Process now(any_shard(server, {"-n"}, {"true"}));
  expect_end(now, exited(75), {err_begins("rlock: stock (5 shards) is busy, held by somebody:1")});
  CHECK(Process(any_shard(server, {"-w", "300ms"}, {"true"})).wait() == exited(75));
  Process waiter(any_shard(server, {}, {"true"}));
  wait_until([&] { return stand_in_every_line(server, 1); }, "the waiter stands in every line");
  waiter.signal(SIGTERM);
  CHECK(waiter.wait() == died_of(SIGTERM));
  check_lines_are_left(server);
}

TEST_SUITE_END();
