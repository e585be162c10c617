// SPDX-License-Identifier: Apache-2.0
// Servers of a quorum that lose their data: a lock that they may have forgotten is not granted to another client.
#include "support/integration.h"
#include "support/three_servers.h"

using namespace rlock::test;

namespace {

// Three servers with old data.
struct Three : ThreeServers {
  Three()
  {
    skip_on({TopologyKind::acl, TopologyKind::sentinel, TopologyKind::cluster, TopologyKind::quorum3,
             TopologyKind::quorum5},
            "it looks at each server's own marker");
  }
  [[nodiscard]] Finished rlock(const Words& call) const { return run_rlock(words(call, {"--server-timeout", "5s"})); }
  [[nodiscard]] Finished try_it() const { return rlock({"run", "-n", "-k", "k", "--ttl", "1s", "--", "true"}); }
  static std::string marker(const RedisServer& server) { return as_text(server.command({"GET", "rlock:quorum"})); }
  // As if the server had its data for one hour longer.
  static void age(const RedisServer& server)
  {
    const std::string text = marker(server);
    server.command({"SET", "rlock:quorum", std::to_string(std::stoll(text) - 3'600'000) + text.substr(text.find(' '))});
  }
  // The servers know rlock, no lock was longer than a second, and none is held.
  void found() const
  {
    expect_end(try_it(), 69, {err_has("--no-restart-guard if it keeps its data")});
    for (const RedisServer& server : servers) {
      wait_until([&] { return as_int(server.command({"EXISTS", "rlock:quorum"})) == 1; }, "it has a marker");
      age(server);
    }
    CHECK(try_it().code == 0);
  }
};

}  // namespace

TEST_CASE("quorum restart: a holder with a long ttl is not forgotten for the sake of an asker with a short one")
{
  Three three;
  three.found();
  // On all servers, because a busy machine could leave out the first one, the only one that remembers the lock below.
  CHECK(three.rlock({"acquire", "--quorum", "all", "-k", "k", "--lease", "5m"}).code == 0);
  three.servers[1].restart();
  three.servers[2].command({"FLUSHALL"});
  CHECK(three.rlock({"run", "-w", "2500ms", "-k", "k", "--ttl", "1s", "--", "true"}).code == 69);
  Three::age(three.servers[1]);      // an hour: more than the five minutes
  CHECK(three.try_it().code == 75);  // the lock is held on one server, and another server is too young
  const Finished waited = three.rlock({"run", "-w", "1500ms", "-k", "k", "--ttl", "1s", "--", "true"});
  CHECK(waited.code == 75);
}

TEST_CASE("quorum restart: a snapshot brings back the marker of another run, which does not count")
{
  Three three;
  three.found();
  const std::string before = Three::marker(three.servers[0]);
  three.servers[0].restart();
  three.servers[0].command({"SET", "rlock:quorum", before});  // as the snapshot has it
  three.servers[1].kill_hard();
  expect_end(three.try_it(), 69, {err_has("may have forgotten locks")});
  CHECK(Three::marker(three.servers[0]) != before);
}

TEST_CASE("quorum restart: servers that are too young are waited for like a busy lock, and that is said")
{
  const Three three;
  const BootClock clock;
  const Instant start = clock.now();
  expect_end(three.rlock({"run", "-w", "30s", "-k", "k", "--ttl", "3s", "--", "true"}), 0,
             {err_has("waiting for k: "), err_has("may have forgotten locks")});
  CHECK(clock.now() - start >= 3s);
  CHECK(three.try_it().code == 0);

  const Three others;
  expect_end(others.rlock({"run", "-w", "500ms", "-k", "k", "--", "true"}), 69, {err_has("may have forgotten locks")});
}

TEST_CASE("quorum restart: the guard can be given, or switched off, which leaves no marker")
{
  const Three three;
  CHECK(three.rlock({"run", "-n", "--restart-guard", "0", "-k", "k", "--", "true"}).code == 0);
  CHECK(as_int(three.servers[0].command({"EXISTS", "rlock:quorum"})) == 0);
  CHECK(three.rlock({"run", "-n", "--restart-guard", "1h", "-k", "k", "--", "true"}).code == 69);
  const Finished soon = three.rlock({"run", "-w", "20s", "--restart-guard", "500ms", "-k", "k", "--", "true"});
  CHECK_MESSAGE(soon.code == 0, soon.err);
}

TEST_CASE("quorum restart: the marker knows the longest ttl of locks, nested ones and renewals, and has a ttl")
{
  const Three three;
  three.found();
  const auto longest = [&] {
    const std::string text = Three::marker(three.servers[0]);  // SINCE RUN LONGEST BEFORE BEGAN SURE
    const auto at = text.find(' ', text.find(' ') + 1) + 1;
    return std::stoll(text.substr(at));
  };
  CHECK(longest() == 1000);
  const Finished acquired = succeeded(three.rlock({"acquire", "-k", "k", "--lease", "2s"}));
  CHECK(longest() == 2000);
  const std::string token = acquired.out.substr(0, acquired.out.find('\n'));
  CHECK(three.rlock({"renew", "-k", "k", "--token", token, "--lease", "10m"}).code == 0);
  CHECK(longest() == 600'000);
  CHECK(as_int(three.servers[0].command({"PTTL", "rlock:quorum"})) > 80LL * 24 * 3600 * 1000);
}
