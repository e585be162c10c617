// SPDX-License-Identifier: Apache-2.0
// rlock --format etcd, curator and kazoo beside the real clients: etcdctl lock, InterProcessMutex of Curator, Lock of kazoo.
#include "support/history_reader.h"
#include "support/native_line.h"

#include <algorithm>
#include <csignal>
#include <map>

using namespace rlock::test;

namespace {

Words noting_around(const std::filesystem::path& go, const std::string& word)
{
  return shell(noting(word) + "; " + until_exists(go) + "; " + noting("end"));
}

// One test case for each client, whose body gets the line.
#define CLIENT_CASE(title) CLIENT_CASE_NAMED(DOCTEST_ANONYMOUS(client_case_), title)
#define CLIENT_CASE_NAMED(body, title)                                                \
  static void body(const NativeLine& line);                                           \
  TEST_CASE("etcd format: " title) { body(EtcdLine()); }                              \
  TEST_CASE("curator format: " title) { body(ZookeeperLine(NativeFormat::curator)); } \
  TEST_CASE("kazoo format: " title) { body(ZookeeperLine(NativeFormat::kazoo)); }     \
  static void body(const NativeLine& line)

void holder_stands(const NativeLine& line, const std::string& mark)
{
  const auto go = home_dir() / "go";
  Process holder = line.start_rlock_run({}, shell("echo fence $RLOCK_FENCE; " + until_exists(go) + "; exit 7"));
  wait_until([&] { return has(holder.out(), "fence "); }, "the job runs");
  REQUIRE(line.contenders().size() == 1);
  const std::string contender = line.contenders().front();
  CHECK_MESSAGE(has(contender, mark), contender);
  const std::string fence = line.fence_of(contender);
  CHECK(holder.out() == "fence " + fence + "\n");
  CHECK_MESSAGE(has(line.status(), "\"fence\":" + fence), line.status());
  create(go);
  CHECK_MESSAGE(holder.wait() == exited(7), holder.err());
  CHECK(holder.err().empty());
  CHECK(line.contenders().empty());
  CHECK(has(line.rlock({"history", "--json", "k"}).out, "\"fence\":" + fence));
  const Finished next = line.rlock_run({}, shell("echo $RLOCK_FENCE"));
  CHECK(std::stoll(next.out) > std::stoll(fence));
  const std::string events = line.rlock({"events", "--json", "-k", "k"}).out;
  CHECK_MESSAGE(has(events, "\"fence\":" + fence + ","), events);
  CHECK_MESSAGE(has(events, "\"fence\":" + first_line(next.out) + ","), events);
}

void native_waits(const NativeLine& line)
{
  const auto go = home_dir() / "go";
  Process holder = line.start_rlock_run({}, noting_around(go, "rlock"));
  await_order("rlock\n");
  Process native = line.start_native(shell(noting("native")));
  line.await_contenders(2);
  CHECK(order() == "rlock\n");
  create(go);
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK(order() == "rlock\nend\nnative\n");
}

void rlock_waits(const NativeLine& line)
{
  const auto go = home_dir() / "go";
  Process native = line.start_native(noting_around(go, "native"));
  await_order("native\n");
  const std::string owner = line.first_owner();
  const std::size_t before = line.contenders().size();
  for (const Words& wait : {Words{"-n"}, Words{"-w", "0"}, Words{"-w", "700ms"}}) {
    const Finished busy = line.rlock_run(wait, {"true"});
    CHECK_MESSAGE(busy.code == 75, busy.err);
    CHECK_MESSAGE(has(busy.err, owner), busy.err);
    CHECK(line.contenders().size() == before);
  }
  CHECK(has(line.rlock({"history", "k"}).out, "skipped"));
  Process waiter = line.start_rlock_run({}, shell(noting("rlock")));
  line.await_contenders(before + 1);
  wait_until([&] { return has(waiter.err(), owner); }, "it says for whom it waits");
  const std::string status = line.status();
  for (const std::string& field :
       {"\"format\":\"" + line.format() + "\"", "\"owner\":\"" + owner + "\"", std::string("\"place\":1")}) {
    CHECK_MESSAGE(has(status, field), status);
  }
  const Finished shown = line.rlock({"status", "k"});
  CHECK(shown.code == 0);
  CHECK_MESSAGE(has(shown.out, "(format " + line.format() + ")"), shown.out);
  CHECK(has(shown.out, "ends with the session of its client") == (line.format() != "etcd"));
  CHECK(order() == "native\n");
  create(go);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK_MESSAGE(waiter.wait(5s) == success, waiter.err());
  CHECK(order() == "native\nend\nrlock\n");
  CHECK(line.contenders().empty());
  CHECK(line.rlock({"status", "k"}).code == 1);
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 0);
}

void rlock_shares(const NativeLine& line)
{
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(noting("native") + "; " + until_exists(go)));
  await_order("native\n");
  const Finished reader = line.rlock_run({"-n"}, {"true"});
  CHECK_MESSAGE(reader.code == 0, reader.err);
  CHECK(native.running());
  create(go);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK(line.contenders().empty());
}

void killed_native(const NativeLine& line)
{
  Process native = line.start_native(shell(noting("native") + "; exec sleep 60"), 2s);
  await_order("native\n");
  Process waiter = line.start_rlock_run({}, {"true"});
  line.await_contenders(2);
  native.signal(SIGKILL);
  CHECK_MESSAGE(waiter.wait(20s) == success, waiter.err());
}

void ended_runner(const NativeLine& line, void (*end)(const Process& runner))
{
  const auto alive = home_dir() / "alive";
  Process holder =
      line.start_rlock_run({"--ttl", "3s"}, {"flock", alive.string(), "sh", "-c", noting("rlock") + "; exec sleep 60"});
  await_order("rlock\n");
  Process native = line.start_native({"flock", "-n", alive.string(), "true"});
  line.await_contenders(2);
  end(holder);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  holder.signal(SIGCONT);
}
void killed_runner(const NativeLine& line)
{
  ended_runner(line, [](const Process& runner) { runner.signal(SIGKILL); });
}

// By what `loses` does to its contender. In etcd a renewal finds that, in 5 s.
void lost_contender(const NativeLine& line, const std::function<void(const std::string&)>& loses)
{
  Process holder = line.start_rlock_run({"--ttl", line.format() == "etcd" ? "15s" : "60s"},
                                        shell(noting("runs") + "; exec sleep 60"));
  await_order("runs\n");
  loses(line.contenders().front());
  CHECK_MESSAGE(holder.wait() == exited(121), holder.err());
  CHECK(has(holder.err(), "was lost"));
  CHECK(line.rlock_run({"-w", "10s"}, {"true"}).code == 0);
}
void deleted_contender(const NativeLine& line)
{
  lost_contender(line, [&](const std::string& contender) { line.remove(contender); });
}

// `start`: how an rlock is started in an own shell.
void nested_run(const NativeLine& line, const Words& nested, const Words& others)
{
  const auto words = [](const Words& options) {
    std::string all = rlock_argv({}).front() + " run -k k";
    for (const std::string& each : options) {
      all += " " + each;
    }
    return all;
  };
  const Finished run = line.rlock_run(
      {}, shell("echo $RLOCK_FENCE; " + words(nested) + " -- sh -c 'echo $RLOCK_FENCE'; env -u RLOCK_HELD " +
                words(others) + " -n -- true; echo $?"));
  CHECK_MESSAGE(run.code == 0, run.err);
  const auto said = lines_of(run.out);
  REQUIRE(said.size() == 3);
  CHECK(said[0] == said[1]);
  CHECK(said[2] == "75");
  CHECK(line.contenders().empty());
}

}  // namespace

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
  wait_until(
      [&] {
        return pids_waiting(line.status()) == std::vector{0, third.pid(), 0, fifth.pid()};
      },
      "the waiters of both programs are shown in their order");
  create(go);
  for (Process* each : {&first, &second, &third, &fourth, &fifth}) {
    CHECK_MESSAGE(each->wait(native_start) == success, each->err());
  }
  CHECK(order() == "1\n2\n3\n4\n5\n");
  wait_until([&] { return line.contenders().empty(); }, "the line is empty");
}

CLIENT_CASE(
    "the second waiter stands in the line when it has become the first, before a native client that comes later")
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
  const Finished forgotten = line.rlock({"run", "-n", "-k", "k", "--", "true"});
  CHECK(forgotten.code == 78);
  CHECK_MESSAGE(has(forgotten.err, "(try --format " + line.format() + "; rflock takes no --format, rlock run does)"),
                forgotten.err);
  const Finished as_flock = line.rlock({"flock", "--verbose", "-n", "k", "true"});
  CHECK(as_flock.code == 78);
  CHECK_MESSAGE(has(as_flock.err, "rflock takes no --format, rlock run does"), as_flock.err);
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
  const Finished taken = line.rlock({"acquire", "--format", line.format(), "-k", "k", "--lease", "60s"});
  REQUIRE_MESSAGE(taken.code == 0, taken.err);
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
      CHECK(renewed.code == 78);
      CHECK(has(renewed.err, "acquire --pid"));
    }
    CHECK(line.rlock({"release", "-k", "k", "--token", token}).code == 0);
  }
  CHECK(line.contenders().empty());
}

CLIENT_CASE("a lock keeps its format, and has one holder at a time")
{
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  const Finished shared = line.rlock({"run", "-s", "-k", "k", "--", "true"});
  CHECK(shared.code == 78);
  CHECK_MESSAGE(has(shared.err, "has the format " + line.format() + ", in which it has one holder at a time"),
                shared.err);
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
    const Finished refused = run_rlock(with_job(joined({"run", "-S", row.url, "-k", "k"}, row.options), {"true"}));
    CHECK(refused.code == 64);
    CHECK_MESSAGE(has(refused.err, row.why), refused.err);
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
    const Finished mixed = line.rlock({"run", "--format", other, "-k", "k", "--", "true"});
    CHECK(mixed.code == 78);
    CHECK(has(mixed.err, "try --format " + line.format()));
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

TEST_CASE("etcd format: a holder whose lease is revoked has lost the lock")
{
  EtcdLine line;
  lost_contender(line, [&](const std::string& contender) {
    (void)line.server().etcdctl({"lease", "revoke", contender.substr(2)});
  });
}

TEST_CASE("etcd format: no lease is left behind, and a key that contains rlock's own keys is refused")
{
  EtcdLine line;
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  CHECK(has(line.server().etcdctl({"lease", "list"}), "found 0 leases"));
  const Finished own = line.rlock({"run", "--format", "etcd", "-k", "app/lock", "--", "true"});
  CHECK(own.code == 78);
  CHECK(has(own.err, "rlock keeps its own keys below app/"));
}

TEST_CASE("etcd format: a lease that another process renews, and --min-hold, keep native clients waiting")
{
  EtcdLine line;
  const Finished taken = line.rlock({"acquire", "--format", "etcd", "-k", "k", "--lease", "3s"});
  REQUIRE_MESSAGE(taken.code == 0, taken.err);
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

TEST_CASE("etcd format: rlock waits for the lock service of etcd, until an unlock or the end of its lease")
{
  EtcdLine line;
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

TEST_CASE("etcd format: the lock service of etcd waits for rlock, also when rlock is killed")
{
  EtcdLine line;
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

TEST_CASE("etcd format: events show the fencing numbers that the jobs have")
{
  const EtcdLine line;
  const auto go = home_dir() / "go";
  const auto fence_of = [&](const Finished& run) { return "\"fence\":" + first_line(run.out); };
  const auto events = [&] { return line.rlock({"events", "--json", "-k", "k"}).out; };
  const Finished alone = line.rlock_run({}, shell("echo $RLOCK_FENCE"));
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
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

namespace {

const Words reads{"-s"};
const Words writes{"-x"};

// `mode`: of each rlock run. `kind`: of each start_native().
ZookeeperLine read_write(const Words& mode = {}, const std::string& kind = {})
{
  return ZookeeperLine(NativeFormat::curator, {.has_readers = true, .mode = mode, .kind = kind});
}

// A lock without readers.
void refused_beside_read_write(const std::string& kind)
{
  const ZookeeperLine line(NativeFormat::curator);
  const auto go = home_dir() / "go";
  Process native = line.start_curator(kind, shell(noting("native") + "; " + until_exists(go)));
  await_order("native\n");
  const std::string node = line.contenders().front();
  const Finished waits = line.rlock_run({"-w", "20s"}, shell(noting("overlap")));
  CHECK_MESSAGE(waits.code == 78, waits.err);
  CHECK(has(waits.err, "cannot exclude " + node));
  CHECK(line.rlock_run({"-n"}, shell(noting("overlap"))).code != 0);
  CHECK(line.contenders() == std::vector<std::string>{node});
  create(go);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK(order() == "native\n");
  CHECK(line.rlock_run({"-w", "20s"}, {"true"}).code == 0);
}

}  // namespace

TEST_CASE("curator read-write: a reader stands in the line as Curator's readers do, and its fence is the czxid")
{
  holder_stands(read_write(reads, "read"), "-__READ__");
}
TEST_CASE("curator read-write: a writer stands in the line as Curator's writers do, and its fence is the czxid")
{
  holder_stands(read_write(writes, "write"), "-__WRIT__");
}

// `mode`: of rlock. `kind`: of Curator.
#define READ_WRITE_CASE(title, scenario, mode, kind) \
  TEST_CASE("curator read-write: " title) { scenario(read_write(mode, kind)); }

READ_WRITE_CASE("a reader of rlock waits for a writer of Curator", rlock_waits, reads, "write")
READ_WRITE_CASE("a writer of rlock waits for a writer of Curator", rlock_waits, writes, "write")
READ_WRITE_CASE("a writer of rlock waits for a reader of Curator", rlock_waits, writes, "read")
READ_WRITE_CASE("a writer of Curator that also reads excludes a reader of rlock", rlock_waits, reads, "both")
READ_WRITE_CASE("a writer of Curator that also reads excludes a writer of rlock", rlock_waits, writes, "both")
READ_WRITE_CASE("a writer of Curator that went on as a reader excludes a writer of rlock", rlock_waits, writes,
                "downgraded")
READ_WRITE_CASE("a reader of rlock shares the lock with a reader of Curator", rlock_shares, reads, "read")
READ_WRITE_CASE("a writer of Curator that went on as a reader shares the lock with a reader of rlock", rlock_shares,
                reads, "downgraded")
READ_WRITE_CASE("a reader of Curator waits for a writer of rlock", native_waits, writes, "read")
READ_WRITE_CASE("a writer of Curator waits for a writer of rlock", native_waits, writes, "write")
READ_WRITE_CASE("a writer of Curator waits for a reader of rlock", native_waits, reads, "write")
READ_WRITE_CASE("after kill -9 of a writer of Curator a reader of rlock runs", killed_native, reads, "write")
READ_WRITE_CASE("after kill -9 of a reader of Curator a writer of rlock runs", killed_native, writes, "read")
READ_WRITE_CASE("the job of a killed reader is dead before a writer of Curator runs", killed_runner, reads, "write")
READ_WRITE_CASE("the job of a killed writer is dead before a reader of Curator runs", killed_runner, writes, "read")
READ_WRITE_CASE("a reader whose node is deleted has lost the lock", deleted_contender, reads, "read")
READ_WRITE_CASE("a writer whose node is deleted has lost the lock", deleted_contender, writes, "write")

TEST_CASE("curator read-write: a nested reader shares the place of its writer")
{
  nested_run(read_write(writes, "write"), reads, reads);
}
TEST_CASE("curator format: a lock is refused where a reader of Curator stands") { refused_beside_read_write("read"); }
TEST_CASE("curator format: a lock is refused where a writer of Curator stands") { refused_beside_read_write("write"); }

TEST_CASE("curator read-write: a reader of Curator shares the lock with readers of rlock")
{
  const ZookeeperLine line = read_write();
  const auto go = home_dir() / "go";
  Process holder = line.start_rlock_run(reads, shell(noting("rlock") + "; " + until_exists(go)));
  await_order("rlock\n");
  Process native = line.start_curator("read", {"true"});
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK(line.rlock_run({"-s", "-n"}, {"true"}).code == 0);
  CHECK(holder.running());
  create(go);
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK(line.contenders().empty());
}

TEST_CASE("curator read-write: both sides run in the order of the line, and no reader passes a writer that waits")
{
  const ZookeeperLine line = read_write();
  const auto go = home_dir() / "go";
  Process first = line.start_rlock_run(reads, shell(until_exists(go) + "; " + noting("1")));
  line.await_contenders(1);
  Process second = line.start_curator("write", shell(noting("2")));
  line.await_contenders(2);
  CHECK(line.rlock_run({"-s", "-n"}, shell(noting("overtaken"))).code == 75);
  Process third = line.start_rlock_run(reads, shell("sleep 0.3; " + noting("3")));
  line.await_contenders(3);
  Process fourth = line.start_curator("write", shell(noting("4")));
  line.await_contenders(4);
  Process fifth = line.start_rlock_run(writes, shell(noting("5")));
  line.await_place(2);
  CHECK(order().empty());
  create(go);
  for (Process* each : {&first, &second, &third, &fourth, &fifth}) {
    CHECK_MESSAGE(each->wait(native_start) == success, each->err());
  }
  CHECK(order() == "1\n2\n3\n4\n5\n");
  wait_until([&] { return line.contenders().empty(); }, "the line is empty");
}

TEST_CASE(
    "curator read-write: a reader that may not pass a waiting writer of rlock is told of the client that holds the "
    "lock")
{
  const ZookeeperLine line = read_write();
  const auto go = home_dir() / "go";
  Process native = line.start_curator("read", shell(noting("native") + "; " + until_exists(go)));
  await_order("native\n");
  const std::string owner = line.first_owner();
  Process writer = line.start_rlock_run(writes, shell(noting("rlock")));
  line.await_contenders(2);
  const Finished reader = line.rlock_run({"-s", "-n"}, {"true"});
  CHECK(reader.code == 75);
  CHECK_MESSAGE(has(reader.err, owner), reader.err);
  create(go);
  CHECK(native.wait(native_start) == success);
  CHECK_MESSAGE(writer.wait() == success, writer.err());
}

TEST_CASE("curator read-write: readers of rlock that waited for a writer run together")
{
  const ZookeeperLine line = read_write();
  const auto go = home_dir() / "go";
  const auto end = home_dir() / "end";
  Process writer = line.start_curator("write", shell(noting("native") + "; " + until_exists(go)));
  await_order("native\n");
  std::vector<Process> readers;
  for (int i = 1; i <= 3; ++i) {
    readers.push_back(line.start_rlock_run(reads, shell(noting("reader") + "; " + until_exists(end))));
    line.await_place(i);
  }
  create(go);
  await_order("native\nreader\nreader\nreader\n");
  CHECK(line.contenders().size() == 3);
  create(end);
  expect_ends(readers);
  CHECK(writer.wait(native_start) == success);
}

TEST_CASE("curator read-write: no job overlaps with that of a writer")
{
  const ZookeeperLine line = read_write();
  const std::string dir = home_dir().string();
  const std::string bad = "echo overlap >> " + dir + "/overlaps; ";
  const std::string write = "mkdir " + dir + "/w || " + bad + "ls " + dir + "/r.* 2>/dev/null && " + bad +
                            "sleep 0.1; rmdir " + dir + "/w; " + noting("x");
  const std::string read =
      "touch " + dir + "/r.$$; [ ! -e " + dir + "/w ] || " + bad + "sleep 0.1; rm " + dir + "/r.$$; " + noting("x");
  std::vector<Process> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(line.start_rlock_run(writes, shell(write)));
    all.push_back(line.start_curator("read", shell(read)));
    all.push_back(line.start_rlock_run(reads, shell(read)));
    all.push_back(line.start_curator(i == 0 ? "both" : "write", shell(write)));
  }
  expect_ends(all, 90s);
  CHECK(text_of(home_dir() / "overlaps").empty());
  CHECK(std::ranges::count(order(), 'x') == 12);
  CHECK(line.contenders().empty());
}

TEST_CASE("curator read-write: after kill -9 of a waiting writer the readers behind it go on")
{
  const ZookeeperLine line = read_write();
  const auto go = home_dir() / "go";
  Process native = line.start_curator("read", shell(noting("native") + "; " + until_exists(go)));
  await_order("native\n");
  Process waiter = line.start_rlock_run({"-x", "--ttl", "2s"}, {"true"});
  line.await_contenders(2);
  waiter.signal(SIGKILL);
  const Finished reader = line.rlock_run({"-s", "-w", "20s"}, {"true"});
  CHECK_MESSAGE(reader.code == 0, reader.err);
  CHECK(native.running());
  create(go);
  CHECK(native.wait(native_start) == success);
}

TEST_CASE(
    "curator read-write: status, list and ttl show the readers of both sides, and force-unlock takes the lock from one")
{
  const ZookeeperLine line = read_write();
  Process native = line.start_curator("read", shell(noting("native") + "; exec sleep 60"));
  await_order("native\n");
  const std::string owner = line.first_owner();
  CHECK_MESSAGE(has(line.status(), "\"owner\":\"" + owner + "\""), line.status());  // that no rlock knows
  Process holder = line.start_rlock_run(reads, shell("echo $RLOCK_TOKEN; exec sleep 60"));
  wait_until([&] { return has(holder.out(), "\n"); }, "the job runs");
  Process writer = line.start_rlock_run(writes, {"true"});
  line.await_contenders(3);
  const std::string status = line.status();
  CHECK_MESSAGE(has(status, "\"owner\":\"" + owner + "\""), status);
  CHECK_MESSAGE(has(status, "\"mode\":\"shared\""), status);
  CHECK_MESSAGE(has(status, "\"format\":\"curator\""), status);
  CHECK_MESSAGE(has(status, "\"place\":1"), status);
  const std::string shown = line.rlock({"status", "k"}).out;
  CHECK_MESSAGE(has(shown, ", shared (format curator)"), shown);
  CHECK_MESSAGE(has(shown, owner), shown);
  CHECK_MESSAGE(has(shown, "sleep 60"), shown);
  CHECK(has(line.rlock({"list"}).out, "k"));
  CHECK(line.rlock({"ttl", "k"}).code == 0);
  const Finished forced = line.rlock({"force-unlock", "-k", "k", "--token", owner, "--yes", "--grace", "200ms"});
  CHECK_MESSAGE(forced.code == 0, forced.err);
  line.await_contenders(2);
  CHECK(holder.running());
  CHECK(writer.running());
  holder.signal(SIGTERM);
  CHECK_MESSAGE(writer.wait() == success, writer.err());
  CHECK(has(line.rlock({"events", "-k", "k"}).out, owner));
}

TEST_CASE("curator read-write: force-unlock takes the lock from a reader of rlock beside a reader of Curator")
{
  const ZookeeperLine line = read_write();
  const auto go = home_dir() / "go";
  Process native = line.start_curator("read", shell(noting("native") + "; " + until_exists(go)));
  await_order("native\n");
  const Finished taken = line.rlock({"acquire", "-s", "--format", "curator", "-k", "k", "--lease", "60s"});
  REQUIRE_MESSAGE(taken.code == 0, taken.err);
  const std::string token = first_line(taken.out);
  line.await_contenders(2);
  CHECK(line.rlock({"check", "-k", "k", "--token", token}).code == 0);
  const Finished forced = line.rlock({"force-unlock", "-k", "k", "--token", token, "--yes", "--now"});
  CHECK_MESSAGE(forced.code == 0, forced.err);
  line.await_contenders(1);
  CHECK(native.running());
  create(go);
  CHECK(native.wait(native_start) == success);
}

TEST_CASE("curator read-write: a nested run without -s and -x is refused, and told how the lock is taken")
{
  const ZookeeperLine line = read_write();
  const Finished run =
      line.rlock_run(writes, shell(rlock_argv({}).front() + " run --format curator -k k -- true; echo $?"));
  CHECK(run.out == "78\n");
  CHECK_MESSAGE(has(run.err, "take it with -s or -x"), run.err);
}

TEST_CASE("curator read-write: a later caller without the format stands in the line as well")
{
  const ZookeeperLine line = read_write();
  CHECK(line.rlock_run(writes, {"true"}).code == 0);
  const auto go = home_dir() / "go";
  Process native = line.start_curator("write", shell(noting("native") + "; " + until_exists(go)));
  await_order("native\n");
  CHECK(line.rlock({"run", "-s", "-n", "-k", "k", "--", "true"}).code == 75);
  Process reader = start_rlock(line.with_server({"run", "-s", "-k", "k", "--", "true"}));
  line.await_contenders(2);
  create(go);
  CHECK(native.wait(native_start) == success);
  CHECK_MESSAGE(reader.wait() == success, reader.err());
}

TEST_CASE(
    "curator read-write: a reader without the format is over before one with it begins, and before a writer of Curator")
{
  const ZookeeperLine line = read_write();
  const auto go = home_dir() / "go";
  Process without = start_rlock(line.with_server(joined(
      {"run", "-s", "-k", "k", "--"}, shell(noting("without") + "; " + until_exists(go) + "; " + noting("end")))));
  await_order("without\n");
  CHECK(line.rlock_run({"-s", "-n"}, {"true"}).code == 75);
  Process with = line.start_rlock_run(reads, shell(noting("with")));
  line.await_place(1);
  create(go);
  CHECK_MESSAGE(without.wait() == success, without.err());
  CHECK_MESSAGE(with.wait() == success, with.err());
  CHECK(order() == "without\nend\nwith\n");
}

TEST_CASE("curator read-write: readers without the format keep the lock while an InterProcessMutex waits in the line")
{
  const ZookeeperLine line(NativeFormat::curator);
  const auto go = home_dir() / "go";
  Process reader =
      start_rlock(line.with_server(joined({"run", "-s", "-k", "k", "--ttl", "3s", "--"},
                                          shell(noting("reader") + "; " + until_exists(go) + "; " + noting("end")))));
  await_order("reader\n");
  Process native = line.start_native({"sleep", "60"});
  line.await_contenders(1);
  Process waiter = line.start_rlock_run({}, {"true"});
  wait_until([&] { return has(waiter.err(), "waiting for k"); }, "it waits");
  CHECK(line.rlock_run({"-w", "3s"}, {"true"}).code == 75);
  create(go);
  CHECK_MESSAGE(reader.wait() == success, reader.err());
  CHECK(order() == "reader\nend\n");
  native.signal(SIGKILL);
  waiter.signal(SIGTERM);
}

TEST_CASE("curator read-write: a lock keeps its format")
{
  const ZookeeperLine line = read_write();
  CHECK(line.rlock_run(reads, {"true"}).code == 0);
  for (const Words& options :
       {Words{}, Words{"--format", "curator"}, Words{"--format", "kazoo"}, Words{"--permits", "2"}}) {
    const Finished refused = line.rlock(joined(joined({"run", "-k", "k"}, options), {"--", "true"}));
    CHECK_MESSAGE(refused.code == 78, refused.err);
    CHECK_MESSAGE(has(refused.err, "try --format curator with --shared or --exclusive"), refused.err);
  }
}

TEST_CASE("curator read-write: a lock without readers keeps its format")
{
  const ZookeeperLine line(NativeFormat::curator);
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  for (const char* mode : {"-s", "-x"}) {
    const Finished refused = line.rlock_run({mode}, {"true"});
    CHECK_MESSAGE(refused.code == 78, refused.err);
    CHECK_MESSAGE(has(refused.err, "has the format curator"), refused.err);
  }
}

TEST_CASE("curator read-write: a lock is refused where an InterProcessMutex stands")
{
  const ZookeeperLine line = read_write();
  const auto go = home_dir() / "go";
  Process native = line.start_curator("mutex", shell(noting("native") + "; " + until_exists(go)));
  await_order("native\n");
  for (const char* mode : {"-s", "-x"}) {
    const Finished refused = line.rlock_run({mode, "-w", "20s"}, shell(noting("overlap")));
    CHECK_MESSAGE(refused.code == 78, refused.err);
    CHECK(has(refused.err, "InterProcessMutex"));
  }
  create(go);
  CHECK(native.wait(native_start) == success);
  CHECK(order() == "native\n");
}

TEST_CASE("curator read-write: doctor names lines in which an InterProcessMutex stands as well")
{
  const ZookeeperLine line = read_write();
  CHECK(line.rlock_run(writes, {"true"}).code == 0);
  line.put("_c_00000000-0000-4000-8000-000000000000-__READ__0000000007");
  CHECK_FALSE(has(line.rlock({"doctor"}).out, "InterProcessReadWriteLock"));
  line.put("_c_10000000-0000-4000-8000-000000000000-lock-0000000008");
  CHECK(has(line.rlock({"doctor"}).out, "InterProcessReadWriteLock, and clients of two of these take k"));
}
