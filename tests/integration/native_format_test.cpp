// SPDX-License-Identifier: Apache-2.0
// rlock --format etcd, curator and kazoo beside the real clients: etcdctl lock, InterProcessMutex of Curator, Lock of kazoo.
#include "support/history_reader.h"
#include "support/native_scenarios.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <sstream>

using namespace rlock::test;

// One test case for each client, whose body gets the line.
#define CLIENT_CASE(title) CLIENT_CASE_NAMED(DOCTEST_ANONYMOUS(client_case_), title)
#define CLIENT_CASE_NAMED(body, title)                                                \
  static void body(const NativeLine& line);                                           \
  TEST_CASE("etcd format: " title) { body(EtcdLine()); }                              \
  TEST_CASE("curator format: " title) { body(ZookeeperLine(NativeFormat::curator)); } \
  TEST_CASE("kazoo format: " title) { body(ZookeeperLine(NativeFormat::kazoo)); }     \
  static void body(const NativeLine& line)

CLIENT_CASE("the holder stands in the line, and nothing is left after its release")
{
  holder_stands(line, line.format() == "etcd" ? "k/" : "lock");
}
CLIENT_CASE("rlock waits for a native client, says so, or is busy and leaves no contender") { rlock_waits(line); }
CLIENT_CASE("after kill -9 of a native client its lease or session ends, and rlock runs") { killed_native(line); }
CLIENT_CASE("the job of a killed runner is dead before a native client runs") { killed_runner(line); }
CLIENT_CASE("the job of a stopped runner is dead before a native client runs")
{
  ended_runner(line, [](const Process& runner) { stop_process(runner.pid()); });
}
CLIENT_CASE("a holder whose contender is deleted has lost the lock") { deleted_contender(line); }
CLIENT_CASE("a nested run has the fence of the outer one, and an rlock without the format waits as well")
{
  nested_run(line, {}, {});
}

CLIENT_CASE("five alternating contenders run in the order of their arrival")
{
  const auto go = home_dir() / "go";
  Process first = line.start_rlock_run({}, shell(until_exists(go) + "; " + noting("1")));
  line.await_contenders(1);
  Process second = line.start_native(shell(noting("2")));
  line.await_contenders(2);
  Process third = line.start_rlock_run({}, shell(noting("3")));
  line.await_contenders(3);
  Process fourth = line.start_native(shell(noting("4")));
  line.await_contenders(4);
  Process fifth = line.start_rlock_run({}, shell(noting("5")));
  const auto are_shown = [&] { return pids_waiting(line.status()) == std::vector{0, third.pid(), 0, fifth.pid()}; };
  wait_until(are_shown, "the waiters of both programs are shown in their order");
  create(go);
  for (Process* each : {&first, &second, &third, &fourth, &fifth}) {
    CHECK_MESSAGE(each->wait(native_start) == success, each->err());
  }
  CHECK(order() == "1\n2\n3\n4\n5\n");
  wait_until([&] { return line.contenders().empty(); }, "the line is empty");
}

CLIENT_CASE("the second waiter, when it has become the first, stands in the line before a later native client")
{
  const auto go = home_dir() / "go";
  const auto end = home_dir() / "end";
  Process first = line.start_rlock_run({}, shell(until_exists(go)));
  line.await_contenders(1);
  Process second = line.start_rlock_run({}, shell(noting("2") + "; " + until_exists(end)));
  line.await_contenders(2);
  Process third = line.start_rlock_run({}, shell(noting("3")));
  line.await_place(2);
  CHECK(line.contenders().size() == 2);
  create(go);
  CHECK(first.wait() == success);
  await_order("2\n");
  line.await_contenders(2);
  CHECK(third.running());
  Process native = line.start_native(shell(noting("native")));
  line.await_contenders(3);
  create(end);
  for (Process* each : {&second, &third, &native}) {
    CHECK_MESSAGE(each->wait(native_start) == success, each->err());
  }
  CHECK(order() == "2\n3\nnative\n");
}

CLIENT_CASE("no two jobs overlap where rlocks and native clients contend")
{
  const int of_each = line.format() == "etcd" ? 5 : 3;  // a JVM is large
  const auto busy = home_dir() / "busy";
  const std::string job = "mkdir " + busy.string() + " || echo overlap >> " + (home_dir() / "overlaps").string() +
                          "; sleep 0.1; rmdir " + busy.string() + "; " + noting("x");
  std::vector<Process> all;
  for (int i = 0; i < of_each; ++i) {
    all.push_back(line.start_rlock_run({}, shell(job)));
    all.push_back(line.start_native(shell(job)));
  }
  expect_ends(all, 60s);
  CHECK(text_of(home_dir() / "overlaps").empty());
  CHECK(std::ranges::count(order(), 'x') == 2 * of_each);
  CHECK(line.contenders().empty());
}

CLIENT_CASE("after kill -9 of a waiter its contender ends with its lease or session")
{
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(until_exists(go)));
  line.await_contenders(1);
  Process waiter = line.start_rlock_run({"--ttl", "2s"}, {"true"});
  line.await_contenders(2);
  waiter.signal(SIGKILL);
  line.await_contenders(1);
  create(go);
  CHECK(native.wait(native_start) == success);
  CHECK(line.rlock_run({"-w", "10s"}, {"true"}).code == 0);
}

CLIENT_CASE("list, status and force-unlock know a native holder, also of a lock that no rlock has taken")
{
  Process native = line.start_native({"sleep", "60"});
  line.await_contenders(1);
  const std::string owner = line.first_owner();
  CHECK(has(line.rlock({"status", "k"}).out, owner));
  expect_end(line.rlock({"run", "-n", "-k", "k", "--", "true"}), 78,
             {err_has("(try --format " + line.format() + "; rflock takes no --format, rlock run does)")});
  expect_end(line.rlock({"flock", "--verbose", "-n", "k", "true"}), 78,
             {err_has("rflock takes no --format, rlock run does")});
  CHECK(line.rlock({"freeze", "k", "--for", "1m", "--reason", "why", "-n"}).code == 75);
  CHECK(line.rlock({"run", "-n", "-k", "another", "--", "true"}).code == 0);
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 75);
  Process waiter = line.start_rlock_run({}, {"true"});
  line.await_contenders(2);
  CHECK(has(line.rlock({"list"}).out, owner));
  CHECK(line.rlock({"force-unlock", "-k", "k", "--token", "another"}).code == 1);
  const Finished forced = line.rlock({"force-unlock", "-k", "k", "--yes", "--grace", "200ms"});
  CHECK_MESSAGE(forced.code == 0, forced.err);
  CHECK_MESSAGE(waiter.wait() == success, waiter.err());
  CHECK(has(line.rlock({"events", "-k", "k"}).out, owner));
}

CLIENT_CASE("rlocks stand in the line one after the other, and run in their order")
{
  const auto go = home_dir() / "go";
  Process first = line.start_rlock_run({"--ttl", "40s"}, shell(until_exists(go)));
  line.await_contenders(1);
  std::vector<Process> waiters;
  for (int i = 1; i <= 3; ++i) {  // a ttl that is longer than that of a waiter without the format
    waiters.push_back(line.start_rlock_run({"--ttl", "40s"}, shell(noting(std::to_string(i)))));
    line.await_place(i);
  }
  line.await_contenders(2);
  create(go);
  CHECK(first.wait() == success);
  expect_ends(waiters);
  CHECK(order() == "1\n2\n3\n");
}

CLIENT_CASE("a lease without a process, which force-unlock takes")
{
  const Finished taken = succeeded(line.rlock({"acquire", "--format", line.format(), "-k", "k", "--lease", "60s"}));
  line.await_contenders(1);
  SUBCASE("by force") { CHECK(line.rlock({"force-unlock", "-k", "k", "--yes", "--now"}).code == 0); }
  SUBCASE("by its token")
  {
    const std::string token = first_line(taken.out);
    CHECK(line.rlock({"check", "-k", "k", "--token", token}).code == 0);
    const Finished renewed = line.rlock({"renew", "-k", "k", "--token", token, "--lease", "60s"});
    if (line.format() == "etcd") {
      CHECK(renewed.code == 0);
    } else {  // no other process can renew a session
      expect_end(renewed, 78, {err_has("acquire --pid")});
    }
    CHECK(line.rlock({"release", "-k", "k", "--token", token}).code == 0);
  }
  CHECK(line.contenders().empty());
}

CLIENT_CASE("a lock keeps its format, and has one holder at a time")
{
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  expect_end(line.rlock({"run", "-s", "-k", "k", "--", "true"}), 78,
             {err_has("has the format " + line.format() + ", in which it has one holder at a time")});
}

TEST_CASE("native format: what cannot be is refused, with the reason")
{
  struct Row {
    std::string url;
    Words options;
    std::string why;
  };
  const std::string etcd = "etcd://127.0.0.1:1";
  const std::string zookeeper = "zookeeper://127.0.0.1:1";
  const std::string redis = "redis://127.0.0.1:1";
  std::vector<Row> rows{{redis, {"--format", "etcd"}, "--format etcd is for locks in etcd"},
                        {zookeeper, {"--format", "etcd"}, "--format etcd is for locks in etcd"},
                        {etcd, {"--format", "etcd", "--permits", "3"}, "--permits"},
                        {etcd, {"--format", "etcd", "-s"}, "--shared"},
                        {zookeeper, {"--format", "kazoo", "-s"}, "exclude each other"},
                        {zookeeper, {"--format", "kazoo", "-x"}, "exclude each other"}};
  for (const std::string format : {"curator", "kazoo"}) {
    const std::string why = "--format " + format + " is for locks in ZooKeeper";
    rows.push_back({redis, {"--format", format}, why});
    rows.push_back({etcd, {"--format", format}, why});
    rows.push_back({zookeeper, {"--format", format, "--permits", "2"}, "exclude each other"});
    rows.push_back({zookeeper, {"--format", format, "--min-hold", "1s"}, "--min-hold"});
  }
  for (const Row& row : rows) {
    expect_end(run_rlock(with_job(joined({"run", "-S", row.url, "-k", "k"}, row.options), {"true"})), 64,
               {err_has(row.why)});
  }
}

TEST_CASE("curator format: a key that names no node, or one of rlock or ZooKeeper, is 78")
{
  const ZookeeperServer nodes;
  const auto code = [&](const std::string& key) {
    return run_rlock({"run", "-S", nodes.url(), "--format", "curator", "-k", key, "--", "true"}).code;
  };
  for (const char* key : {"rlock", "/rlock/locks", "a//b", "a/", "a/../b", "zookeeper/k"}) {
    CAPTURE(key);
    CHECK(code(key) == 78);
  }
  CHECK(code("/jobs/stock") == 0);
}

TEST_CASE("etcd format: a native client waits for rlock") { native_waits(EtcdLine()); }
TEST_CASE("curator format: a native client waits for rlock, also below a chroot")
{
  native_waits(ZookeeperLine(NativeFormat::curator, {.chroot = "/app/locks"}));
}
TEST_CASE("kazoo format: a native client waits for rlock, also below a chroot")
{
  native_waits(ZookeeperLine(NativeFormat::kazoo, {.chroot = "/app/locks"}));
}

TEST_CASE("curator and kazoo format: a lock of the one is none of the other, and doctor names lines of both")
{
  for (const auto& [own, other] : {std::pair(NativeFormat::curator, "kazoo"), {NativeFormat::kazoo, "curator"}}) {
    const ZookeeperLine line(own);
    CHECK(line.rlock_run({}, {"true"}).code == 0);
    expect_end(line.rlock({"run", "--format", other, "-k", "k", "--", "true"}), 78,
               {err_has("try --format " + line.format())});
    CHECK_FALSE(has(line.rlock({"doctor"}).out, "Curator and kazoo"));
    line.put("_c_00000000-0000-4000-8000-000000000000-lock-0000000007");
    line.put("00000000000040008000000000000000__lock__0000000008");
    CHECK(has(line.rlock({"doctor"}).out, "Curator and kazoo"));
  }
}

TEST_CASE("kazoo format: the line stays as it is when the leader is killed")
{
  ZookeeperLine line(NativeFormat::kazoo, {.nodes = 3});
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(until_exists(go) + "; " + noting("native")));
  line.await_contenders(1);
  Process waiter = line.start_rlock_run({}, shell(noting("rlock")));
  line.await_contenders(2);
  line.kill_leader();
  CHECK(order().empty());
  create(go);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK_MESSAGE(waiter.wait(20s) == success, waiter.err());
  CHECK(order() == "native\nrlock\n");
  CHECK(line.contenders().empty());
}

#define ETCD_LINE_CASE(title) CASE_WITH(EtcdLine, line, title)

ETCD_LINE_CASE("etcd format: a holder whose lease is revoked has lost the lock")
{
  lost_contender(line, [&](const std::string& contender) {
    (void)line.server().etcdctl({"lease", "revoke", contender.substr(2)});
  });
}

ETCD_LINE_CASE("etcd format: no lease is left behind, and a key that contains rlock's own keys is refused")
{
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  CHECK(has(line.server().etcdctl({"lease", "list"}), "found 0 leases"));
  expect_end(line.rlock({"run", "--format", "etcd", "-k", "app/lock", "--", "true"}), 78,
             {err_has("rlock keeps its own keys below app/")});
}

ETCD_LINE_CASE("etcd format: a lease that another process renews, and --min-hold, keep native clients waiting")
{
  const Finished taken = succeeded(line.rlock({"acquire", "--format", "etcd", "-k", "k", "--lease", "3s"}));
  const std::string token = first_line(taken.out);
  line.await_contenders(1);
  CHECK(line.rlock({"renew", "-k", "k", "--token", token, "--lease", "60s"}).code == 0);
  wait_until([&] { return has(line.server().etcdctl({"lease", "list"}), "found 1 leases"); }, "the first lease ends");
  CHECK(line.contenders().size() == 1);
  CHECK(line.rlock({"release", "-k", "k", "--token", token}).code == 0);
  CHECK(line.contenders().empty());
  CHECK(line.rlock_run({"--min-hold", "60s"}, {"true"}).code == 0);
  CHECK(line.contenders().size() == 1);
  CHECK(line.rlock({"force-unlock", "-k", "k", "--yes"}).code == 0);
  CHECK(line.contenders().empty());
}

namespace {

// The lock service of etcd (v3lock), by its JSON gateway.
class LockService {
 public:
  explicit LockService(EtcdLine& line)
      : m_url("http://127.0.0.1:" + std::to_string(line.server().port_of(0)) + "/v3"), m_lease(grant())
  {
  }
  // Returns at once. The answer comes when the lock is taken.
  [[nodiscard]] Process start_lock() const
  {
    return post("/lock/lock", R"({"name": "aw==", "lease": ")" + m_lease + R"("})");  // k
  }
  void revoke() const { CHECK(post("/lease/revoke", R"({"ID": ")" + m_lease + R"("})").wait(30s) == success); }

  void unlock(const Process& locked) const
  {
    CHECK(post("/lock/unlock", R"({"key": ")" + value_in(locked.out(), "key") + R"("})").wait(30s) == success);
  }
  static bool is_taken(const Process& locked) { return has(locked.out(), R"("key":")"); }

 private:
  [[nodiscard]] Process post(const std::string& path, const std::string& body) const
  {
    return Process({"curl", "-sS", "--fail", "--max-time", "60", "--noproxy", "*", "-d", body, m_url + path});
  }
  [[nodiscard]] std::string grant() const
  {
    Process granted = post("/lease/grant", R"({"TTL": 60})");
    REQUIRE_MESSAGE(granted.wait(30s) == success, granted.err());
    return value_in(granted.out(), "ID");
  }
  static std::string value_in(const std::string& json, const std::string& name)
  {
    const std::string head = "\"" + name + "\":\"";
    const auto at = json.find(head);
    REQUIRE_MESSAGE(at != std::string::npos, json);
    return json.substr(at + head.size(), json.find('"', at + head.size()) - at - head.size());
  }

  std::string m_url;
  std::string m_lease;
};

}  // namespace

ETCD_LINE_CASE("etcd format: rlock waits for the lock service of etcd, until an unlock or the end of its lease")
{
  const LockService service(line);
  Process locked = service.start_lock();
  wait_until([&] { return LockService::is_taken(locked); }, "the lock service has the lock: " + locked.err());
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 75);
  CHECK(has(line.status(), line.first_owner()));
  Process waiter = line.start_rlock_run({}, {"true"});
  line.await_contenders(2);
  SUBCASE("unlock") { service.unlock(locked); }
  SUBCASE("its lease ends") { service.revoke(); }
  CHECK_MESSAGE(waiter.wait(20s) == success, waiter.err());
  CHECK(line.contenders().empty());
}

ETCD_LINE_CASE("etcd format: the lock service of etcd waits for rlock, also when rlock is killed")
{
  const LockService service(line);
  const auto go = home_dir() / "go";
  std::filesystem::remove(go);  // of the other part
  Process holder = line.start_rlock_run({"--ttl", "3s"}, shell(until_exists(go)));
  line.await_contenders(1);
  Process locked = service.start_lock();
  line.await_contenders(2);
  CHECK_FALSE(LockService::is_taken(locked));
  SUBCASE("released") { create(go); }
  SUBCASE("killed") { holder.signal(SIGKILL); }
  wait_until([&] { return LockService::is_taken(locked); }, "the lock service has the lock");
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 75);
  service.unlock(locked);
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 0);
}

TEST_CASE("etcd format: rlocks and native clients keep their turns when the leader of three members is killed")
{
  EtcdLine line({.nodes = 3});
  const auto go = home_dir() / "go";
  const auto job = [](const std::string& word) { return shell(noting(word) + "; sleep 0.1; " + noting(word)); };
  Process first = line.start_rlock_run({"--ttl", "20s"}, shell(until_exists(go) + "; " + noting("1")));
  line.await_contenders(1);
  Process second = line.start_native(job("2"));
  line.await_contenders(2);
  Process third = line.start_rlock_run({"--ttl", "20s"}, job("3"));
  line.await_contenders(3);
  Process fourth = line.start_native(job("4"));
  line.await_contenders(4);
  const auto leader = line.server().find_leader();
  REQUIRE(leader);
  line.server().kill_member(*leader);
  wait_until([&] { return line.server().find_leader().has_value(); }, "there is a new leader");
  create(go);
  for (Process* each : {&first, &second, &third, &fourth}) {
    CHECK_MESSAGE(each->wait(60s) == success, each->err());
  }
  CHECK(order() == "1\n2\n2\n3\n3\n4\n4\n");
  line.server().start_member(*leader);
  line.server().await_members();
  wait_until([&] { return line.contenders().empty(); }, "the line is empty");
  CHECK(line.rlock_run({"-w", "10s"}, {"true"}).code == 0);
}

ETCD_LINE_CASE("etcd format: events show the fencing numbers that the jobs have")
{
  const auto go = home_dir() / "go";
  const auto fence_of = [&](const Finished& run) { return "\"fence\":" + first_line(run.out); };
  const auto events = [&] { return line.rlock({"events", "--json", "-k", "k"}).out; };
  const Finished alone = succeeded(line.rlock_run({}, shell("echo $RLOCK_FENCE")));
  CHECK_MESSAGE(has(events(), "\"event\":\"acquired\""), events());
  Process holder = line.start_rlock_run({}, shell(until_exists(go)));
  line.await_contenders(1);
  Process next = line.start_rlock_run({}, shell("echo $RLOCK_FENCE"));
  line.await_contenders(2);
  Process last = line.start_rlock_run({}, shell("echo $RLOCK_FENCE"));
  line.await_place(2);
  create(go);
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK_MESSAGE(next.wait() == success, next.err());
  CHECK_MESSAGE(last.wait() == success, last.err());
  std::istringstream lines(events());
  std::map<std::string, int> times;  // each number: of a grant, and of its end, which may be that of the next grant
  for (std::string event; std::getline(lines, event);) {
    const auto at = event.find("\"fence\":");
    REQUIRE_MESSAGE(at != std::string::npos, event);
    const std::string fence = event.substr(at, event.find_first_of(",}", at) - at);
    CHECK_MESSAGE(fence.size() < std::string("\"fence\":1234567").size(), event);
    CHECK_MESSAGE(!has(event, "\"fence\":null"), event);
    ++times[fence];
  }
  for (const Finished& run : {alone, Finished{.code = 0, .signal = 0, .out = next.out(), .err = {}},
                              Finished{.code = 0, .signal = 0, .out = last.out(), .err = {}}}) {
    CHECK_MESSAGE(times[fence_of(run)] > 0, events());
  }
}
