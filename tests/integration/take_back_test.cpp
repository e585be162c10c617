// SPDX-License-Identifier: Apache-2.0
// An acquire that was taken back: its release may arrive late. Neither the release nor its note may affect a later
// grant.
#include "engine/lock_keys.h"
#include "support/integration.h"
#include "support/relay.h"

#include <deque>

using namespace rlock::test;

namespace {

// The last arguments of a release without messages.
const std::string unannounced = "$2\r\n-1\r\n$1\r\n0\r\n$1\r\n0\r\n";

const std::string events = LockKeys(*LockName::parse("k")).events;

// Three servers, each behind a relay.
struct Three {
  std::deque<RedisServer> servers;
  std::deque<Relay> relays;
  bool is_written;  // the lock is a read-write lock that another owner holds for writing

  explicit Three(bool written = false) : is_written(written)
  {
    skip_on({TopologyKind::tcp, TopologyKind::tls, TopologyKind::acl, TopologyKind::sentinel, TopologyKind::cluster,
             TopologyKind::quorum3, TopologyKind::quorum5},
            "each server is reached through a relay");
    for (int i = 0; i < 3; ++i) {
      servers.emplace_back();
      relays.emplace_back(servers.back());
    }
    CHECK(run_rlock(words({"run", "-k", "other", "--", "true"})).code == 0);  // every server has the scripts
  }
  [[nodiscard]] Words words(const Words& call, const Words& more = {}) const
  {
    Words all{call.front(), "--no-restart-guard"};
    for (const Relay& relay : relays) {
      all.insert(all.end(), {"-S", relay.url()});
    }
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), call.begin() + 1, call.end());
    return all;
  }
  [[nodiscard]] bool is_shown_everywhere() const
  {
    return std::all_of(servers.begin(), servers.end(), [](const RedisServer& server) {
      return rlock_on(server, {"status", "k"}).code == 0;
    });
  }
  // Another client takes it as soon as it is free there.
  void take_as(const std::string& owner, std::size_t server) const
  {
    const std::string script =
        "if redis.call('EXISTS', 'k') == 1 then return 0 end "
        "redis.call('HSET', 'k', unpack(ARGV)) redis.call('PEXPIRE', 'k', 60000) return 1";
    Words call{"EVAL", script, "0", is_written ? owner + ":write" : owner, "1"};
    if (is_written) {
      call.insert(call.end(), {"mode", "write"});
    }
    wait_until([&] { return as_int(servers[server].command(call)) == 1; }, "another has it", 30s);
  }
  void free(std::size_t server) const { servers[server].command({"DEL", "k"}); }
  void wait_for_take_back(std::size_t server) const
  {
    wait_until([&] { return has_note(servers[server]); }, "an attempt was taken back", 30s);
  }
  // Two other clients hold the lock, on one server each.
  void split() const
  {
    take_as("x:1", 1);
    take_as("y:1", 2);
  }
  // A call that has to wait: twice it gets a part of the servers, a quorum in all, and gives it back.
  template <typename IsTaken>
  void let_win_after_take_backs(IsTaken is_taken) const
  {
    wait_for_take_back(0);
    take_as("z:1", 0);
    free(1);
    wait_for_take_back(1);
    free(0);
    free(2);
    wait_until(is_taken, "a later attempt has it", 30s);
  }
  void lose() const
  {
    for (const std::size_t server : {0U, 1U, 2U}) {
      free(server);
    }
  }
  static bool has_note(const RedisServer& server)
  {
    for (const std::string& entry : as_texts(server.command({"LRANGE", events, "0", "-1"}))) {
      if (has(entry, std::string("\0released\0", 10))) {
        return true;
      }
    }
    return false;
  }
};

}  // namespace

TEST_CASE("take back: a release that is delivered late does not end the later grant, on a quorum")
{
  for (const Words& kind : std::vector<Words>{{}, {"-x"}, {"--permits", "1"}, {"--format", "string"}}) {
    CAPTURE(kind.empty() ? "plain" : kind.back());
    Three three;
    CHECK(run_rlock(three.words({"run", "-k", "other2", "--", "true"}, kind)).code == 0);
    for (const RedisServer& server : three.servers) {
      Words other = joined({"acquire", "-S", server.url(), "-k", "k", "--lease", "5m"}, kind);
      CHECK(run_rlock(other).code == 0);
    }
    Process job = start_rlock(
        three.words({"run", "-k", "k", "--quorum", "all", "--", "sh", "-c", "echo on; exec sleep 60"}, kind));
    wait_until([&] { return has(job.err(), "waiting for"); }, "the job waits", 30s);
    three.relays[0].hold_next(unannounced);
    three.relays[1].hold_next(unannounced);
    three.servers[0].command({"FLUSHALL"});
    three.servers[1].command({"FLUSHALL"});
    wait_until([&] { return three.relays[0].holds() && three.relays[1].holds(); }, "an attempt is taken back", 30s);
    three.servers[2].command({"FLUSHALL"});
    wait_until([&] { return job.out() == "on\n"; }, "a later attempt has it", 30s);
    CHECK(three.is_shown_everywhere());
    three.relays[0].deliver();
    three.relays[1].deliver();
    CHECK(three.is_shown_everywhere());
    job.signal(SIGTERM);
    CHECK(job.wait() == died_of(SIGTERM));
  }
}

TEST_CASE("take back: its note is not taken for the release of a lock that is lost later, on a quorum")
{
  {
    const Three three;
    three.split();
    const std::string end = make_temp_dir("take_back") / "end";
    Process run = start_rlock(
        three.words({"run", "-k", "k", "--", "sh", "-c", "echo on; until test -e " + end + "; do sleep 0.01; done"}));
    three.let_win_after_take_backs([&] { return run.out() == "on\n"; });
    three.lose();
    Process({"touch", end}).wait();
    CHECK(run.wait() == exited(121));
  }
  {
    const Three three(true);
    three.split();
    Process flock = start_rlock(three.words({"flock", "--ttl", "3s", "k", "sh", "-c", "echo on; exec sleep 60"}));
    three.let_win_after_take_backs([&] { return flock.out() == "on\n"; });
    three.lose();
    CHECK(flock.wait(30s) == exited(121));
  }
  const Three three;
  three.split();
  Process watched({"sleep", "60"});
  Process acquire =
      start_rlock(three.words({"acquire", "-k", "k", "--ttl", "3s", "--pid", std::to_string(watched.pid())}));
  three.let_win_after_take_backs([&] { return !acquire.running(); });
  CHECK(acquire.wait() == success);
  three.lose();
  CHECK(watched.wait(30s) == died_of(SIGTERM));
}
