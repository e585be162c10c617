// SPDX-License-Identifier: Apache-2.0
// `rlock acquire --shards`: takes any free one of several locks, and tells the caller which.
#include "support/integration.h"
#include "support/json.h"
#include "support/paths.h"
#include "support/topology.h"

#include <set>

using namespace rlock::test;
TEST_SUITE_BEGIN("topology");

SERVER_CASE("acquire: --shards takes each lock once, and says which")
{
  std::set<std::int64_t> taken;
  for (int i = 0; i < 3; ++i) {
    const Finished got =
        succeeded(rlock_on(server, {"acquire", "-k", "stock", "--shards", "3", "-n", "--lease", "60s", "--json"}));
    const Json lease = Json::parse(got.out);
    const std::int64_t shard = lease.at("shard").number();
    CHECK(lease.at("key") == "stock:" + std::to_string(shard));
    taken.insert(shard);
  }
  CHECK(taken == std::set<std::int64_t>{0, 1, 2});
  expect_end(rlock_on(server, {"acquire", "-k", "stock", "--shards", "3", "-n", "--lease", "60s", "--json"}), 75,
             {err_has("stock (3 shards) is busy")});
}

SERVER_CASE("shards by name: each is taken once, and status, list and watch show the pool as one")
{
  const Words phones{"-k", "phones", "--shards", "pixel-7,pixel 8,3"};
  const Words take = joined({"acquire"}, joined(phones, {"-n", "--lease", "60s", "--json"}));
  std::set<std::string> taken;
  for (int free = 2; free >= 0; --free) {
    const Finished got = succeeded(rlock_on(server, take));
    const Json lease = Json::parse(got.out);
    const std::string name = lease.at("shard_name").text();
    CHECK(lease.at("key") == "phones:" + name);
    CHECK(lease.at("shard") == (name == "pixel-7" ? 0 : name == "3" ? 2 : 1));
    taken.insert(name);
    const std::string line = "phones: " + std::to_string(free) + " of 3 free\n";
    expect_end(rlock_on(server, {"status", "-k", "phones"}), 0,
               {out_begins(line), out_has("\nphones:" + name + ": held\n")});
    CHECK(rlock_on(server, {"status", "phones:*"}).out.starts_with(line));
    CHECK(has(rlock_on(server, {"list"}).out, "\nphones "));
  }
  CHECK(taken == std::set<std::string>{"pixel-7", "pixel 8", "3"});
  CHECK(rlock_on(server, take).code == 75);
}

SERVER_CASE("shards by name: the job is told which it has, and callers that wait for any of them are counted once")
{
  const Words job{"sh", "-c", "echo $RLOCK_KEY $RLOCK_SHARD $RLOCK_SHARD_NAME; exec sleep 100"};
  const auto start = [&](const Words& command) {
    return start_on(server, joined({"run", "-k", "phones", "--shards", "a,b", "--"}, command));
  };
  std::vector<Process> holders;
  for (int i = 0; i < 2; ++i) {
    holders.push_back(start(job));
    wait_until([&] { return !holders.back().out().empty(); }, "it has a shard");
  }
  CHECK(std::set<std::string>{holders[0].out(), holders[1].out()} ==
        std::set<std::string>{"phones:a 0 a\n", "phones:b 1 b\n"});
  skip_on_quorum("a quorum has no queue");
  std::vector<Process> waiters;
  waiters.push_back(start({"true"}));
  waiters.push_back(start({"true"}));
  wait_until(
      [&] {
        return rlock_on(server, {"status", "phones"}).out.starts_with("phones: 0 of 2 free, 2 wait\n");
      },
      "both wait");
  const std::string status = rlock_on(server, {"status", "phones"}).out;
  CHECK(count(status, "\n  waiting  1  ") == 1);
  const std::string json = rlock_on(server, {"status", "--json", "phones"}).out;
  const Json pool = Json::parse(json.substr(0, json.find('\n')));
  CHECK(pool.at("key") == "phones");
  CHECK(pool.at("pool").at("free") == 0);
  CHECK(pool.at("pool").at("waiting") == 2);
  CHECK(count(json, "\"waiting\":2}}\n") == 3);
  for (const Process& holder : holders) {
    holder.signal(SIGTERM);
  }
  expect_ends(waiters, 20s);
}

TEST_CASE("acquire: --shards with --export names the lock that was taken, so that release finds it")
{
  const RedisServer server({.alone = true});
  Process script({"sh", "-c",
                  "set -e; lock=$(" RLOCK_BINARY " acquire -S '" + server.direct_url() +
                      "' -k stock --shards 2 --pid $$ --export); eval \"$lock\"; "
                      "echo \"$RLOCK_KEY $RLOCK_SHARD\"; " RLOCK_BINARY " check; " RLOCK_BINARY " release"});
  CHECK(script.wait(std::chrono::seconds(30)) == success);
  const std::string out = script.out();
  CHECK((out.starts_with("stock:0 0\n") || out.starts_with("stock:1 1\n")));
}

TEST_CASE("check: --json tells the number of the shard in a job, and after acquire --export")
{
  const RedisServer server({.alone = true});
  const Words run{"run", "-S", server.direct_url(), "-k",    "stock", "--shards",
                  "3",   "--", RLOCK_BINARY,        "check", "--json"};
  for (int i = 0; i < 3; ++i) {
    const Finished told = succeeded(run_rlock(run));
    const Json lease = Json::parse(told.out);
    CHECK(lease.at("key") == "stock:" + std::to_string(lease.at("shard").number()));
  }
  Process script({"sh", "-c",
                  "set -e; lock=$(" RLOCK_BINARY " acquire -S '" + server.direct_url() +
                      "' -k stock --shards 2 --pid $$ --export); eval \"$lock\"; " RLOCK_BINARY
                      " check --json; " RLOCK_BINARY " check --json -k \"$RLOCK_KEY\"; " RLOCK_BINARY
                      " run -k stock:plain -- " RLOCK_BINARY " check --json; env -u RLOCK_SHARD " RLOCK_BINARY
                      " check --json; " RLOCK_BINARY " release"});
  CHECK(script.wait(std::chrono::seconds(30)) == success);
  const std::vector<Json> told = json_lines(script.out());
  REQUIRE(told.size() == 4);
  for (const std::size_t i : {0U, 1U}) {
    CHECK(told[i].at("key") == "stock:" + std::to_string(told[i].at("shard").number()));
  }
  CHECK(told[2].at("key") == "stock:plain");
  CHECK(told[2].at("shard") == nullptr);
  CHECK(told[3].at("shard") == nullptr);
}

SERVER_CASE("acquire: --shards needs a way to say which lock was taken")
{
  CHECK(rlock_on(server, {"acquire", "-k", "stock", "--shards", "2", "--lease", "1m"}).code == 64);
  CHECK(rlock_on(server, {"acquire", "-k", "stock", "--shards", "0", "--lease", "1m", "--json"}).code == 64);
}

TEST_SUITE_END();
