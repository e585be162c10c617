// SPDX-License-Identifier: Apache-2.0
// rlock --format etcd beside the real etcdctl lock.
#include <algorithm>
#include <map>
#include "support/etcd_fixture.h"
#include "support/history_reader.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

class Line {
 public:
  explicit Line(EtcdOptions options = {}) : m_server(std::move(options)) {}
  [[nodiscard]] const EtcdServer& server() const { return m_server; }
  [[nodiscard]] EtcdServer& server() { return m_server; }

  [[nodiscard]] Words with_server(Words args) const
  {
    args.insert(args.begin() + 1, {"-S", m_server.url()});
    return args;
  }
  [[nodiscard]] Finished rlock(Words args) const { return run_rlock(with_server(std::move(args))); }
  [[nodiscard]] Process start_rlock_run(const Words& options, const Words& job) const
  {
    return start_rlock(with_server(with_job(joined({"run", "--format", "etcd", "-k", "k"}, options), job)));
  }
  [[nodiscard]] Finished rlock_run(const Words& options, const Words& job) const
  {
    return rlock(with_job(joined({"run", "--format", "etcd", "-k", "k"}, options), job));
  }
  [[nodiscard]] Process start_native(const Words& job, const Words& options = {}) const
  {
    std::string endpoints;
    for (std::size_t node = 0; node < m_server.number_of_members(); ++node) {
      endpoints += (node == 0 ? "http://127.0.0.1:" : ",http://127.0.0.1:") + std::to_string(m_server.port(node));
    }
    const Words lock{"etcdctl", "--endpoints=" + endpoints, "lock"};
    return Process(joined(joined(lock, options), joined({"k", "--"}, job)), {.env = {{"ETCDCTL_API", "3"}}});
  }

  // The contenders, the first one first.
  [[nodiscard]] std::vector<std::string> contenders() const
  {
    std::istringstream lines(
        m_server.etcdctl({"get", "--prefix", "--keys-only", "--sort-by=CREATE", "--order=ASCEND", "k/"}));
    std::vector<std::string> keys;
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) {
        keys.push_back(line);
      }
    }
    return keys;
  }
  void await_contenders(std::size_t number) const
  {
    wait_until([&] { return contenders().size() == number; }, std::to_string(number) + " contenders are in the line");
  }
  void revoke_lease_of(const std::string& contender) const
  {
    [[maybe_unused]] const std::string out =
        m_server.etcdctl({"lease", "revoke", contender.substr(contender.rfind('/') + 1)});
  }

 private:
  EtcdServer m_server;
};

std::string until_exists(const std::filesystem::path& file)
{
  return "until [ -e " + file.string() + " ]; do sleep 0.02; done";
}

Words shell(const std::string& line) { return {"sh", "-c", line}; }

std::string noting(const std::string& word) { return "echo " + word + " >> " + (home_dir() / "order").string(); }

std::string order() { return text_of(home_dir() / "order"); }

void create(const std::filesystem::path& file) { std::ofstream(file).flush(); }

}  // namespace

TEST_CASE("etcd format: the holder stands in the line of etcdctl lock, and nothing is left after its release")
{
  const Line line;
  const Finished run = line.rlock_run(
      {}, shell("etcdctl --endpoints=http://127.0.0.1:" + std::to_string(line.server().port(0)) +
                " get --prefix k/ -w fields | grep -E '\"(Key|CreateRevision)\"'; echo fence $RLOCK_FENCE; exit 7"));
  CHECK_MESSAGE(run.code == 7, run.err);
  CHECK(run.err.empty());
  CHECK(has(run.out, "\"Key\" : \"k/"));
  const auto at = run.out.find("\"CreateRevision\" : ");
  REQUIRE(at != std::string::npos);
  const std::string revision = run.out.substr(at + 19, run.out.find('\n', at) - at - 19);
  CHECK(has(run.out, "fence " + revision + "\n"));
  CHECK(line.contenders().empty());
  CHECK(has(line.server().etcdctl({"lease", "list"}), "found 0 leases"));
  CHECK(has(line.rlock({"history", "--json", "k"}).out, "\"fence\":" + revision));
}

TEST_CASE("etcd format: etcdctl lock waits for rlock")
{
  const Line line;
  const auto go = home_dir() / "go";
  Process holder = line.start_rlock_run({}, shell(noting("rlock") + "; " + until_exists(go) + "; " + noting("end")));
  line.await_contenders(1);
  Process native = line.start_native(shell(noting("native")));
  line.await_contenders(2);
  wait_until([&] { return order() == "rlock\n"; }, "the job runs");
  create(go);
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK_MESSAGE(native.wait() == success, native.err());
  CHECK(order() == "rlock\nend\nnative\n");
}

TEST_CASE("etcd format: rlock waits for etcdctl lock, says so, and starts when it is gone")
{
  const Line line;
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(until_exists(go) + "; " + noting("native")));
  line.await_contenders(1);
  const std::string owner = line.contenders().front().substr(2);
  Process waiter = line.start_rlock_run({}, shell(noting("rlock")));
  line.await_contenders(2);
  wait_until([&] { return has(waiter.err(), owner); }, "it says for whom it waits");
  const Finished status = line.rlock({"status", "--json", "k"});
  CHECK(status.code == 0);
  CHECK(has(status.out, "\"format\":\"etcd\""));
  CHECK_MESSAGE(has(status.out, "\"owner\":\"" + owner + "\""), status.out);
  CHECK_MESSAGE(has(status.out, "\"place\":1"), status.out);
  CHECK(has(line.rlock({"status", "k"}).out, "(format etcd)"));
  create(go);
  const auto began = std::chrono::steady_clock::now();
  CHECK(native.wait() == success);
  CHECK_MESSAGE(waiter.wait() == success, waiter.err());
  CHECK(order() == "native\nrlock\n");
  CHECK(std::chrono::steady_clock::now() - began < 5s);
  CHECK(line.contenders().empty());
}

TEST_CASE("etcd format: -n is busy at once behind a native client, and leaves no contender")
{
  const Line line;
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(until_exists(go)));
  line.await_contenders(1);
  const Finished busy = line.rlock_run({"-n"}, {"true"});
  CHECK_MESSAGE(busy.code == 75, busy.err);
  CHECK(has(busy.err, line.contenders().front().substr(2)));
  CHECK(line.contenders().size() == 1);
  CHECK(line.rlock_run({"-w", "0"}, {"true"}).code == 75);
  create(go);
  CHECK(native.wait() == success);
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 0);
}

TEST_CASE("etcd format: a wait that is over leaves no contender and no hold behind")
{
  const Line line;
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(until_exists(go)));
  line.await_contenders(1);
  const Finished busy = line.rlock_run({"-w", "700ms"}, {"true"});
  CHECK_MESSAGE(busy.code == 75, busy.err);
  CHECK(line.contenders().size() == 1);
  CHECK(has(line.rlock({"history", "k"}).out, "skipped"));
  create(go);
  CHECK(native.wait() == success);
  CHECK(line.rlock({"status", "k"}).code == 1);
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 0);
}

TEST_CASE("etcd format: five alternating contenders run in the order of their arrival")
{
  const Line line;
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
        return pids_waiting(line.rlock({"status", "--json", "k"}).out) == std::vector{0, third.pid(), 0, fifth.pid()};
      },
      "the waiters of both programs are shown in their order");
  create(go);
  for (Process* each : {&first, &second, &third, &fourth, &fifth}) {
    CHECK_MESSAGE(each->wait() == success, each->err());
  }
  CHECK(order() == "1\n2\n3\n4\n5\n");
  wait_until([&] { return line.contenders().empty(); }, "the line is empty");
}

TEST_CASE("etcd format: no two jobs overlap where many rlocks and native clients contend")
{
  const Line line;
  const auto busy = home_dir() / "busy";
  const std::string job = "mkdir " + busy.string() + " || echo overlap >> " + (home_dir() / "overlaps").string() +
                          "; sleep 0.1; rmdir " + busy.string() + "; " + noting("x");
  std::vector<Process> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(line.start_rlock_run({}, shell(job)));
    all.push_back(line.start_native(shell(job)));
  }
  expect_ends(all, 40s);
  CHECK(text_of(home_dir() / "overlaps").empty());
  CHECK(std::ranges::count(order(), 'x') == 10);
  CHECK(line.contenders().empty());
}

TEST_CASE("etcd format: after kill -9 of a native client its lease ends, and rlock runs")
{
  const Line line;
  Process native = line.start_native({"sleep", "60"}, {"--ttl=2"});
  line.await_contenders(1);
  Process waiter = line.start_rlock_run({}, {"true"});
  line.await_contenders(2);
  native.signal(SIGKILL);
  CHECK_MESSAGE(waiter.wait(20s) == success, waiter.err());
}

TEST_CASE("etcd format: after kill -9 of the runner the job is dead before a native client runs")
{
  const Line line;
  const auto alive = home_dir() / "alive";
  Process holder = line.start_rlock_run({"--ttl", "3s"}, {"flock", alive.string(), "sleep", "60"});
  line.await_contenders(1);
  Process native = line.start_native({"flock", "-n", alive.string(), "true"});
  line.await_contenders(2);
  holder.signal(SIGKILL);
  CHECK_MESSAGE(native.wait(20s) == success, native.err());
}

TEST_CASE("etcd format: after kill -9 of a waiter its contender ends with its lease")
{
  const Line line;
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(until_exists(go)));
  line.await_contenders(1);
  Process waiter = line.start_rlock_run({"--ttl", "2s"}, {"true"});
  line.await_contenders(2);
  waiter.signal(SIGKILL);
  line.await_contenders(1);
  create(go);
  CHECK(native.wait() == success);
  CHECK(line.rlock_run({"-w", "10s"}, {"true"}).code == 0);
}

TEST_CASE("etcd format: a holder whose contender is deleted, or whose lease is revoked, has lost the lock")
{
  const Line line;
  bool revokes = false;
  SUBCASE("deleted") {}
  SUBCASE("revoked") { revokes = true; }
  Process holder = line.start_rlock_run({"--ttl", "15s"}, {"sleep", "60"});  // a renewal in 5 s finds the loss
  line.await_contenders(1);
  const std::string contender = line.contenders().front();
  if (revokes) {
    line.revoke_lease_of(contender);
  } else {
    [[maybe_unused]] const std::string out = line.server().etcdctl({"del", contender});
  }
  CHECK_MESSAGE(holder.wait() == exited(121), holder.err());
  CHECK(has(holder.err(), "was lost"));
  CHECK(line.rlock_run({"-w", "10s"}, {"true"}).code == 0);
}

TEST_CASE("etcd format: list, status and force-unlock know a native holder, also of a lock that no rlock has taken")
{
  const Line line;
  Process native = line.start_native({"sleep", "60"});
  line.await_contenders(1);
  const std::string owner = line.contenders().front().substr(2);
  CHECK(has(line.rlock({"status", "k"}).out, owner));
  const Finished forgotten = line.rlock({"run", "-n", "-k", "k", "--", "true"});
  CHECK(forgotten.code == 78);
  CHECK_MESSAGE(has(forgotten.err, "(try --format etcd; rflock takes no --format, rlock run does)"), forgotten.err);
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

TEST_CASE("etcd format: rlocks hand over, nest, keep and renew as without it")
{
  const Line line;
  SUBCASE("the next ones stand in the line and run in their order")
  {
    const auto go = home_dir() / "go";
    Process first = line.start_rlock_run({}, shell(until_exists(go)));
    line.await_contenders(1);
    std::vector<Process> waiters;
    for (int i = 1; i <= 3; ++i) {
      waiters.push_back(line.start_rlock_run({}, shell(noting(std::to_string(i)))));
      wait_until(
          [&] {
            return has(line.rlock({"status", "--json", "k"}).out, "\"place\":" + std::to_string(i));
          },
          "the waiter is in the queue");
    }
    line.await_contenders(2);
    create(go);
    CHECK(first.wait() == success);
    expect_ends(waiters);
    CHECK(order() == "1\n2\n3\n");
  }
  SUBCASE("a nested run has the fence of the outer one, and an rlock without the format waits as well")
  {
    const Finished run = line.rlock_run({}, shell("echo $RLOCK_FENCE; " + rlock_argv({}).front() +
                                                  " run -k k -- sh -c 'echo $RLOCK_FENCE'; env -u RLOCK_HELD " +
                                                  rlock_argv({}).front() + " run -n -k k -- true; echo $?"));
    CHECK_MESSAGE(run.code == 0, run.err);
    std::istringstream words(run.out);
    std::string outer;
    std::string inner;
    std::string busy;
    words >> outer >> inner >> busy;
    CHECK(outer == inner);
    CHECK(busy == "75");
  }
  SUBCASE("a lease that another process renews, and --min-hold, keep native clients waiting")
  {
    const Finished taken = line.rlock({"acquire", "--format", "etcd", "-k", "k", "--lease", "3s"});
    REQUIRE_MESSAGE(taken.code == 0, taken.err);
    const std::string token = taken.out.substr(0, taken.out.find('\n'));
    line.await_contenders(1);
    CHECK(line.rlock({"renew", "-k", "k", "--token", token, "--lease", "60s"}).code == 0);
    CHECK(line.rlock({"check", "-k", "k", "--token", token}).code == 0);
    wait_until([&] { return has(line.server().etcdctl({"lease", "list"}), "found 1 leases"); }, "the first lease ends");
    CHECK(line.contenders().size() == 1);
    CHECK(line.rlock({"release", "-k", "k", "--token", token}).code == 0);
    CHECK(line.contenders().empty());
    CHECK(line.rlock_run({"--min-hold", "60s"}, {"true"}).code == 0);
    CHECK(line.contenders().size() == 1);
    CHECK(line.rlock({"force-unlock", "-k", "k", "--yes"}).code == 0);
    CHECK(line.contenders().empty());
  }
}

TEST_CASE("etcd format: what cannot be is refused, with the reason")
{
  const auto refused = [](const Words& options) {
    const Finished run = run_rlock(joined({"run", "--format", "etcd", "-k", "k"}, joined(options, {"--", "true"})));
    CHECK(run.code == 64);
    return run.err;
  };
  CHECK(has(refused({"-S", "redis://127.0.0.1:1"}), "--format etcd is for locks in etcd"));
  CHECK(has(refused({"-S", "zookeeper://127.0.0.1:1"}), "--format etcd is for locks in etcd"));
  CHECK(has(refused({"-S", "etcd://127.0.0.1:1", "--permits", "3"}), "--permits"));
  CHECK(has(refused({"-S", "etcd://127.0.0.1:1", "-s"}), "--shared"));
  const Line line;
  const Finished own = line.rlock({"run", "--format", "etcd", "-k", "app/lock", "--", "true"});
  CHECK(own.code == 78);
  CHECK(has(own.err, "rlock keeps its own keys below app/"));
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  const Finished shared = line.rlock({"run", "-s", "-k", "k", "--", "true"});
  CHECK(shared.code == 78);
  CHECK(has(shared.err, "has the format etcd, in which it has one holder at a time"));
}

namespace {

// The lock service of etcd (v3lock), by its JSON gateway.
class LockService {
 public:
  explicit LockService(const Line& line)
      : m_url("http://127.0.0.1:" + std::to_string(line.server().port(0)) + "/v3"), m_lease(grant())
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
  const Line line;
  const LockService service(line);
  Process locked = service.start_lock();
  wait_until([&] { return LockService::is_taken(locked); }, "the lock service has the lock: " + locked.err());
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 75);
  CHECK(has(line.rlock({"status", "--json", "k"}).out, line.contenders().front().substr(2)));
  Process waiter = line.start_rlock_run({}, {"true"});
  line.await_contenders(2);
  SUBCASE("unlock") { service.unlock(locked); }
  SUBCASE("its lease ends") { service.revoke(); }
  CHECK_MESSAGE(waiter.wait(20s) == success, waiter.err());
  CHECK(line.contenders().empty());
}

TEST_CASE("etcd format: the lock service of etcd waits for rlock, also when rlock is killed")
{
  const Line line;
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
  Line line({.nodes = 3});
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
  const Line line;
  const auto go = home_dir() / "go";
  const auto fence_of = [&](const Finished& run) { return "\"fence\":" + run.out.substr(0, run.out.find('\n')); };
  const auto events = [&] { return line.rlock({"events", "--json", "-k", "k"}).out; };
  const Finished alone = line.rlock_run({}, shell("echo $RLOCK_FENCE"));
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  CHECK_MESSAGE(has(events(), "\"event\":\"acquired\""), events());
  Process holder = line.start_rlock_run({}, shell(until_exists(go)));
  line.await_contenders(1);
  Process next = line.start_rlock_run({}, shell("echo $RLOCK_FENCE"));
  line.await_contenders(2);
  Process last = line.start_rlock_run({}, shell("echo $RLOCK_FENCE"));
  wait_until([&] { return has(line.rlock({"status", "--json", "k"}).out, "\"place\":2"); }, "the last is in the queue");
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
