// SPDX-License-Identifier: Apache-2.0
// What becomes of locks, holders and waiters when sentinels make another server the master.
#include "redis/sentinel.h"
#include "support/activity_log.h"
#include "support/hostile_server.h"
#include "support/integration.h"
#include "support/sentinel_group.h"
#include "support/sockets.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <future>

using namespace rlock::test;

namespace {

// "" after a role change, because a sentinel cuts the connections then.
std::string role_of(const RedisServer& server)
{
  const Result<Reply> role = server.try_command({"ROLE"});
  return role ? role->elements.front().text : "";
}

std::int64_t in_line(const RedisServer& server) { return as_int(server.command({"ZCARD", "rlock:queue:{k}"})); }

// A lock that goes through `count` jobs, one by one, and never two at once, while one master after the other is killed.
class Relay {
 public:
  Relay(SentinelGroup& group, std::vector<std::string> options) : m_group(group), m_options(std::move(options)) {}

  void holder_and_waiters(int count)
  {
    m_processes.push_back(
        start("holder", "until test -e " + (m_dir / "go").string() + "; do " + beat("holder") + "; done"));
    wait_until([&] { return as_int(m_group.master().command({"HLEN", "k"})) == 1; }, "the lock is taken");
    for (int i = 0; i < count; ++i) {
      const std::string name = "w" + std::to_string(i);
      m_processes.push_back(start(name, "for i in 1 2 3; do " + beat(name) + "; done"));
    }
    wait_until([&] { return in_line(m_group.master()) == count; }, "all wait", 30s);
    wait_until([&] { return m_witness.jobs().contains("holder"); }, "the job runs");
  }

  void go() { std::ofstream(m_dir / "go") << "go\n"; }

  // In the order in which they were started.
  std::vector<Exit> ends()
  {
    std::vector<Exit> all;
    for (Process& process : m_processes) {
      all.push_back(process.wait(60s));
    }
    return all;
  }

  [[nodiscard]] std::string errors() const
  {
    std::string all;
    for (const Process& process : m_processes) {
      all += process.err();
    }
    return all;
  }
  [[nodiscard]] const ActivityLog& activity() const { return m_witness; }

 private:
  [[nodiscard]] std::string beat(const std::string& name) const
  {
    return "echo \"" + name + " $(date +%s%N)\" >> " + m_witness.file().string() + "; sleep 0.01";
  }
  Process start(const std::string&, const std::string& job)
  {
    return start_run(m_group.url(), joined({"-k", "k"}, m_options), {"sh", "-c", job});
  }

  SentinelGroup& m_group;
  std::vector<std::string> m_options;
  const std::filesystem::path m_dir = make_temp_dir("relay");
  ActivityLog m_witness;
  std::vector<Process> m_processes;
};

int failovers()
{
  const char* wanted = std::getenv("RLOCK_TEST_FAILOVERS");
  return wanted == nullptr ? 2 : std::max(1, std::atoi(wanted));
}

// One fail-over under load; the old master is back as a replica when this returns.
void fail_over(SentinelGroup& group, const std::vector<std::string>& options)
{
  group.await_replicas(2);
  Relay relay(group, options);
  relay.holder_and_waiters(20);
  RedisServer& old = group.master();
  old.kill_hard();
  group.await_master_other_than(old.port());
  relay.go();
  const auto ends = relay.ends();
  CAPTURE(relay.errors());
  CHECK(std::count(ends.begin(), ends.end(), success) == 21);
  CHECK(relay.activity().jobs().size() == 21);
  CHECK(overlap(relay.activity().jobs()) == "");
  CHECK(as_int(group.master().command({"EXISTS", "k"})) == 0);
  old.restart();
  wait_until([&] { return role_of(old) == "slave"; }, "the old master follows the new one", 60s);
}

constexpr std::uint16_t silent = 0;
constexpr std::uint16_t hangs_up = 1;

// A sentinel that names the port which `next_port` returns for a connection, or is silent, or hangs up.
HostileServer scripted_sentinel(const std::function<std::uint16_t()>& next_port)
{
  const Behavior script = [next_port](const Peer& peer) {
    const std::uint16_t named = next_port();
    const std::string port = std::to_string(named);
    for (std::string request = peer.hear_some(); !request.empty(); request = peer.hear_some()) {
      if (named == hangs_up) {
        return;
      }
      if (named == silent) {
        continue;
      }
      if (request.find("GET-MASTER-ADDR-BY-NAME") != std::string::npos) {
        peer.say("*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(port.size()) + "\r\n" + port + "\r\n");
      }
      if (request.find("\r\nMASTER\r\n") != std::string::npos) {
        peer.say("*2\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n");
      }
    }
  };
  return HostileServer(script, Endpoint::Kind::tcp);
}

constexpr Millis until_checked{1100};  // after that the transport asks a sentinel before it uses its connection

// Sets `key` in the master that the transport believes in.
Result<Reply> set(Sentinel& transport, const Clock& clock, std::string_view key)
{
  const std::array<std::string_view, 3> words{"SET", key, "v"};
  return transport.call(key, words, {.deadline = clock.now() + 10s, .stop = StopToken::never()});
}

bool has_key(const RedisServer& server, const std::string& key) { return as_int(server.command({"EXISTS", key})) == 1; }

}  // namespace

TEST_CASE("sentinel: with --sync 1 no lock is lost when the master is killed, and never two run at once")
{
  SentinelGroup group;
  for (int i = 0; i < failovers(); ++i) {
    CAPTURE(i);
    fail_over(group, {"--sync", "1"});
  }
}

TEST_CASE("sentinel: a lock that the new master never heard of is found lost at the next renewal")
{
  SentinelGroup group;
  group.servers[1].kill_hard();
  group.servers[2].kill_hard();
  Process holder = start_run(group.url(), {"-k", "k", "--ttl", "30s"}, {"sh", "-c", "echo runs; exec sleep 100"});
  // A holder without the answer to its request would take the lock on the new master.
  wait_until([&] { return holder.out() == "runs\n"; }, "the job runs");
  group.servers[0].kill_hard();
  group.servers[1].restart();
  group.servers[2].restart();
  group.await_master_other_than(group.servers[0].port());
  CHECK(holder.wait(30s).code == 121);
  CHECK_MESSAGE(has(holder.err(), "a fail-over lost it"), holder.err());
}

TEST_CASE("sentinel: without a new master the job is stopped before its lock expires")
{
  SentinelGroup group({.replicas = 0});
  const ActivityLog activity;
  Process holder =
      start_run(group.url(), {"-k", "k", "--ttl", "3s", "--kill-after", "500ms"}, activity.stubborn_tree("holder"));
  wait_until([&] { return activity.tree_beats("holder"); }, "the job runs");
  const std::int64_t killed_at = now_ns();
  group.servers[0].kill_hard();
  CHECK(holder.wait().code == 121);
  CHECK(activity.jobs().at("holder").last_ns < killed_at + 3'000'000'000);
}

TEST_CASE("sentinel: no lock is taken on an old master that comes back as a master")
{
  SentinelGroup group({.let_old_masters_be = true});
  RedisServer& old = group.servers[0];
  // It was away all the time, and still names the old master.
  SentinelProcess stale({.master_port = old.port(), .quorum = 9, .down_after = 60s, .password = ""});
  stale.stop_signal();
  old.kill_hard();
  group.await_master_other_than(old.port());
  old.restart();  // the sentinels leave it as it is for some seconds
  stale.cont();
  std::string url = group.url();
  url.insert(url.find("127."), stale.where() + ",");
  const auto is_a_master = [&] { return role_of(old) == "master"; };
  int met = 0;
  while (is_a_master() && met < 20) {
    const Finished end = run_rlock({"run", "-S", url, "-k", "k", "--", "true"});
    CHECK(end.code == 0);
    const bool has_lock = as_int(old.command({"EXISTS", "redisson_lock_token:{k}"})) == 1;
    const bool is_still_a_master = is_a_master();  // else it has what the new master has
    met += is_still_a_master ? 1 : 0;
    CHECK_FALSE((has_lock && is_still_a_master));
  }
  CHECK(met > 0);
}

// What lay in its sockets when it was stopped it answers as the master that it was.
TEST_CASE("sentinel: a late answer of a stopped master is not believed when another is the master by then")
{
  SentinelGroup group({.down_after = 3s, .let_old_masters_be = true});
  const BootClock clock;
  Sentinel transport(*parse_url(group.url()), clock);
  const auto set = [&] {
    const std::array<std::string_view, 3> words{"SET", "k", "v"};
    return transport.call("k", words, {.deadline = clock.now() + 120s, .stop = StopToken::never()});
  };
  REQUIRE(set());
  RedisServer& old = group.servers[0];
  old.stop_signal();
  auto late = std::async(std::launch::async, set);
  const auto knows_another = [&](const SentinelProcess& sentinel) {
    const std::uint16_t port = sentinel.master_port();
    return port != 0 && port != old.port();
  };
  for (const SentinelProcess& sentinel : group.sentinels) {
    wait_until([&] { return knows_another(sentinel); }, "a sentinel names another master", 60s);
  }
  old.cont();
  const auto answer = late.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ErrorCode::unreachable);
  CHECK(has(answer.error().text, "came late"));
  CHECK(set());  // the new master
  CHECK(as_text(group.master().command({"GET", "k"})) == "v");
}

TEST_CASE("sentinel: when one does not answer whether the master is still the master, the next request asks another")
{
  const RedisServer old({.tcp = true});
  const RedisServer promoted({.tcp = true});
  std::atomic<std::uint16_t> first_names = old.port();
  std::atomic<std::uint16_t> second_names = old.port();
  const HostileServer first = scripted_sentinel([&] { return first_names.load(); });
  const HostileServer second = scripted_sentinel([&] { return second_names.load(); });
  const BootClock clock;
  const std::string hosts = "127.0.0.1:" + std::to_string(first.port()) + ",127.0.0.1:" + std::to_string(second.port());
  Sentinel transport(*parse_url("redis+sentinel://" + hosts + "/mymaster"), clock);
  REQUIRE(set(transport, clock, "a"));
  REQUIRE(has_key(old, "a"));
  first_names = silent;
  second_names = promoted.port();
  std::this_thread::sleep_for(until_checked);
  CHECK(set(transport, clock, "b"));
  CHECK(set(transport, clock, "c"));
  CHECK(has_key(promoted, "c"));
  CHECK_FALSE(has_key(old, "c"));
}

TEST_CASE("sentinel: a server that is said to be no master any more gets no request, although none names the new one")
{
  const RedisServer old({.tcp = true});
  const std::uint16_t other = free_port();
  std::atomic<int> connections = 0;
  const HostileServer sentinel = scripted_sentinel([&] {
    const int connection = connections++;
    return connection == 0 ? old.port() : connection == 1 ? other : hangs_up;
  });
  const BootClock clock;
  const std::string url = "redis+sentinel://127.0.0.1:" + std::to_string(sentinel.port()) + "/mymaster";
  Sentinel transport(*parse_url(url), clock);
  REQUIRE(set(transport, clock, "a"));
  std::this_thread::sleep_for(until_checked);
  CHECK_FALSE(set(transport, clock, "b"));
  CHECK_FALSE(has_key(old, "b"));
}
