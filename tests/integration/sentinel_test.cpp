// SPDX-License-Identifier: Apache-2.0
// Following the master that sentinels name. Over 300 lines: every case needs a group of sentinels.
#include "server/sentinel.h"
#include "support/activity_log.h"
#include "support/certificates.h"
#include "support/paths.h"
#include "support/sentinel_group.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

// "" after a role change, because a sentinel cuts the connections then.
std::string role_of(const RedisServer& server)
{
  const Result<Reply> role = server.try_command({"ROLE"});
  return role ? role->elements.front().text : "";
}

const Exit success{.code = 0, .signal = 0};

bool one_line(const std::string& text)
{
  return text.starts_with("rlock: ") && std::count(text.begin(), text.end(), '\n') == 1;
}

bool says(const Finished& end, const std::string& text) { return end.err.find(text) != std::string::npos; }

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
    std::vector<std::string> words{"run", "-S", m_group.url(), "-k", "k"};
    words.insert(words.end(), m_options.begin(), m_options.end());
    words.insert(words.end(), {"--", "sh", "-c", job});
    return Process(rlock_argv(words));
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

}  // namespace

TEST_CASE("sentinel: run, nest, wait and look, by the sentinels' URL")
{
  SentinelGroup group({.replicas = 1});
  const std::string url = group.url();
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "-S", url, "-k", "k"});
    return run_rlock(words);
  };
  CHECK(run({"--", "sh", "-c", "exit 7"}).code == 7);
  CHECK(run({"--", "sh", "-c", "echo $RLOCK_SERVER"}).out == url + "\n");
  const Finished nested = run({"--", "sh", "-c", std::string(RLOCK_BINARY) + " run -n -k k -- echo nested"});
  CHECK(nested.out == "nested\n");
  CHECK(nested.err == "");

  Process holder(rlock_argv({"run", "-S", url, "-k", "k", "--label", "first", "--", "sleep", "60"}));
  wait_until([&] { return as_int(group.servers[0].command({"EXISTS", "k"})) == 1; }, "the lock is taken");
  const Finished status = run_rlock({"status", "-S", url, "-k", "k"});
  CHECK(status.code == 0);
  CHECK(status.out.find("first") != std::string::npos);
  Process waiter(rlock_argv({"run", "-S", url, "-k", "k", "--", "echo", "mine"}));
  wait_until([&] { return in_line(group.servers[0]) == 1; }, "one waits");
  CHECK(run({"-n", "--", "true"}).code == 75);
  holder.signal(SIGTERM);
  CHECK(waiter.wait() == success);
  CHECK(waiter.out() == "mine\n");
}

TEST_CASE("sentinel: one of them is enough, and none of them is 69")
{
  SentinelGroup group({.replicas = 0});
  const std::vector<std::string> words{"run", "-S", group.url(), "-k", "k", "--", "true"};
  group.sentinels[0].kill_hard();
  group.sentinels[1].stop_signal();
  const Finished one = run_rlock(words);
  CHECK(one.code == 0);
  CHECK(one.err == "");
  group.sentinels[2].kill_hard();
  group.sentinels[1].kill_hard();
  const Finished none = run_rlock(words);
  CHECK(none.code == 69);
  CHECK(one_line(none.err));
  CHECK(says(none, "no sentinel of " + group.url() + " answers"));
}

TEST_CASE("sentinel: what is wrong is told in one line")
{
  SentinelGroup group({.replicas = 1, .sentinels = 1, .sentinel_password = "geheim"});
  const auto run = [&](const std::string& url) {
    const Finished end = run_rlock({"run", "-S", url, "-k", "k", "--server-timeout", "2s", "--", "true"});
    CAPTURE(end.err);
    CHECK((end.code == 0 ? end.err.empty() : one_line(end.err)));
    CHECK(end.err.find("geheim") == std::string::npos);
    CHECK(end.err.find("falsch") == std::string::npos);
    return end;
  };
  const std::string where = "redis+sentinel://" + group.sentinels[0].where();
  const std::string with_password = "?sentinel_password=geheim";

  SUBCASE("its password")
  {
    CHECK(run(group.url()).code == 77);
    CHECK(says(run(group.url()), "RLOCK_SENTINEL_PASSWORD"));
    CHECK(run(group.url() + "?sentinel_password=falsch").code == 77);
    CHECK(run(group.url() + with_password).code == 0);
    CHECK(
        run_rlock({"run", "-S", group.url(), "-k", "k", "--", "true"}, {.env = {{"RLOCK_SENTINEL_PASSWORD", "geheim"}}})
            .code == 0);
    const Finished job = run_rlock({"run", "-S", group.url() + with_password, "-k", "k", "--", "sh", "-c",
                                    "env; tr '\\0' ' ' < /proc/$PPID/cmdline"});
    CHECK(job.code == 0);
    CHECK(job.out.find("geheim") == std::string::npos);
  }
  SUBCASE("the rights of its user")
  {
    const auto set = [&](std::vector<std::string> rules) {
      rules.insert(rules.begin(), {"ACL", "SETUSER", "watcher", "reset", "on", ">geheim"});
      return show(group.sentinels[0].command(rules));
    };
    const std::string as_watcher = group.url() + "?sentinel_username=watcher&sentinel_password=geheim";
    REQUIRE(set({"-@all", "+sentinel|get-master-addr-by-name", "+sentinel|master", "+subscribe", "&+switch-master"}) ==
            "\"OK\"");
    CHECK(run(as_watcher).code == 0);
    REQUIRE(set({"-@all", "+sentinel|get-master-addr-by-name"}) == "\"OK\"");
    CHECK(run(as_watcher).code == 0);
    REQUIRE(set({"-@all"}) == "\"OK\"");
    CHECK(run(as_watcher).code == 77);
  }
  SUBCASE("the name")
  {
    const Finished unknown = run(where + "/other" + with_password);
    CHECK(unknown.code == 78);
    CHECK(says(unknown, "know no master other"));
  }
  SUBCASE("no sentinel at all")
  {
    const Finished none = run("redis+sentinel://127.0.0.1:" + std::to_string(group.servers[0].port()) + "/mymaster");
    CHECK(none.code == 78);
    CHECK(says(none, "is no sentinel"));
  }
  SUBCASE("a replica in the place of the master")
  {
    SentinelProcess misled({.master_port = group.servers[1].port(), .quorum = 1, .down_after = 60s, .password = ""});
    const Finished replica = run("redis+sentinel://" + misled.where() + "/mymaster");
    CHECK(replica.code == 69);
    CHECK(says(replica, "says that it is a replica and no master"));
  }
  SUBCASE("a master that is gone")
  {
    group.servers[0].kill_hard();
    SentinelProcess late({.master_port = group.servers[0].port(), .quorum = 1, .down_after = 60s, .password = ""});
    const Finished gone = run("redis+sentinel://" + late.where() + "/mymaster");
    CHECK(gone.code == 69);
    CHECK(says(gone, "the master mymaster is not there: cannot reach redis://127.0.0.1:"));
  }
}

TEST_CASE("sentinel: TLS with the sentinels, with the master, with both")
{
  const Authority authority;
  const Certificate certificate = authority.sign("IP:127.0.0.1");
  const RedisServer secured({.tcp = true, .tls = certificate});
  const RedisServer plain({.tcp = true});
  const std::string tls_port = std::to_string(free_port());
  const auto watching = [&](const RedisServer& server, std::vector<std::string> lines) {
    return SentinelProcess::Options{
        .master_port = server.port(), .quorum = 9, .down_after = 1h, .password = "", .lines = std::move(lines)};
  };
  const auto run = [&](const std::string& url) {
    const Finished end = run_rlock({"run", "-S", url, "--cacert", authority.file(), "-k", "k", "--", "true"});
    CAPTURE(end.err);
    CHECK((end.code == 0 || one_line(end.err)));
    return end.code;
  };
  const std::vector<std::string> tls{"tls-port " + tls_port, "tls-cert-file " + certificate.file,
                                     "tls-key-file " + certificate.key, "tls-ca-cert-file " + authority.file(),
                                     "tls-auth-clients no"};
  {
    const SentinelProcess sentinel(watching(secured, tls));
    CHECK(run("rediss+sentinel://127.0.0.1:" + tls_port + "/mymaster") == 0);
    CHECK(run("rediss+sentinel://" + sentinel.where() + "/mymaster?sentinel_tls=no") == 0);
    CHECK(run("rediss+sentinel://" + sentinel.where() + "/mymaster") == 69);
  }
  const SentinelProcess sentinel(watching(plain, tls));
  CHECK(run("redis+sentinel://127.0.0.1:" + tls_port + "/mymaster?sentinel_tls=yes") == 0);
  CHECK(run_rlock({"run", "-S", "redis+sentinel://127.0.0.1:" + tls_port + "/mymaster?sentinel_tls=yes", "-k", "k",
                   "--", "true"})
            .code == 69);
}

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
  Process holder(rlock_argv({"run", "-S", group.url(), "-k", "k", "--ttl", "30s", "--", "sleep", "100"}));
  wait_until([&] { return as_int(group.servers[0].command({"EXISTS", "k"})) == 1; }, "the lock is taken");
  group.servers[0].kill_hard();
  group.servers[1].restart();
  group.servers[2].restart();
  group.await_master_other_than(group.servers[0].port());
  CHECK(holder.wait(30s).code == 121);
  CHECK(holder.err().find("expired or deleted") != std::string::npos);
}

TEST_CASE("sentinel: without a new master the job is stopped before its lock expires")
{
  SentinelGroup group({.replicas = 0});
  const ActivityLog activity;
  std::vector<std::string> words{"run", "-S", group.url(), "-k", "k", "--ttl", "3s", "--kill-after", "500ms", "--"};
  const auto job = activity.stubborn_tree("holder");
  words.insert(words.end(), job.begin(), job.end());
  Process holder(rlock_argv(words));
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
  CHECK(answer.error().text.find("came late") != std::string::npos);
  CHECK(set());  // the new master
  CHECK(as_text(group.master().command({"GET", "k"})) == "v");
}
