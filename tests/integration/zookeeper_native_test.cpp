// SPDX-License-Identifier: Apache-2.0
// rlock --format curator and kazoo beside the real InterProcessMutex of Curator and the real Lock of kazoo.
#include <algorithm>
#include <csignal>
#include "store/zookeeper/zookeeper_native_line.h"
#include "support/integration.h"
#include "support/paths.h"
#include "support/skip.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;
const fs::path interop = fs::path(RLOCK_SOURCE_DIR) / "tests/interop";
const fs::path libraries = fs::path(RLOCK_SOURCE_DIR) / "build/interop";

// The Python that has kazoo; empty: none has.
std::string python_with_kazoo()
{
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (Process({python, "-c", "import kazoo"}).wait(30s) == success) {
      return python;
    }
  }
  return {};
}

// What runs a command under a native lock, but for the arguments of the lock.
Words native_client(const std::string& format)
{
  if (format == "kazoo") {
    const std::string python = python_with_kazoo();
    if (python.empty()) {
      skip("no kazoo (install python3-kazoo)");
    }
    return {python, "-B", (interop / "kazoo_lock.py").string()};
  }
  const fs::path curator = libraries / "curator";
  if (!fs::exists(curator / "classes")) {
    skip("no Curator (sh tests/interop/run.sh --download)");
  }
  return {"java",
          "-Xmx64m",
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1",
          "-cp",
          (curator / "*").string() + ":" + (curator / "classes").string(),
          "CuratorLock"};
}

// A lock that both sides know.
class Line {
 public:
  explicit Line(std::string format, std::string chroot = {}, int nodes = 1)
      : m_chroot(std::move(chroot)), m_format(std::move(format)), m_native(native_client(m_format))
  {
    m_nodes.emplace(ZookeeperOptions{.nodes = nodes});
    m_client = m_nodes->client(m_nodes->url(), 60s, m_clock);
  }

  [[nodiscard]] const std::string& format() const { return m_format; }
  // Returns when another member leads.
  void kill_leader()
  {
    m_nodes->kill(m_nodes->leader());
    wait_until([&] { return m_nodes->leader() != 0; }, "another member leads");
  }
  [[nodiscard]] Words with_server(Words args) const
  {
    args.insert(args.begin() + 1, {"-S", m_nodes->url(m_chroot)});
    return args;
  }
  [[nodiscard]] Finished rlock(Words args) const { return run_rlock(with_server(std::move(args))); }
  [[nodiscard]] Words run_words(const Words& options, const Words& job) const
  {
    return with_job(joined({"run", "--format", m_format, "-k", "k"}, options), job);
  }
  [[nodiscard]] Process start_rlock_run(const Words& options, const Words& job) const
  {
    return start_rlock(with_server(run_words(options, job)));
  }
  [[nodiscard]] Finished rlock_run(const Words& options, const Words& job) const
  {
    return rlock(run_words(options, job));
  }
  [[nodiscard]] Process start_native(const Words& job, Millis session = 30s) const
  {
    return Process(joined(m_native, joined({m_nodes->hosts() + m_chroot, std::to_string(session.count()), "/k"}, job)));
  }
  // A reader ("read") or writer ("write") of Curator's InterProcessReadWriteLock.
  [[nodiscard]] Process start_read_write(const std::string& kind, const Words& job) const
  {
    Words words = m_native;
    words.insert(words.begin() + 1, "-Dkind=" + kind);
    return Process(joined(words, joined({m_nodes->hosts() + m_chroot, "30000", "/k"}, job)));
  }

  // The names of the nodes, the first one first.
  [[nodiscard]] std::vector<std::string> contenders() const
  {
    const auto format = m_format == "kazoo" ? NativeFormat::kazoo : NativeFormat::curator;
    const auto answer = m_client->ask(zookeeper::get_children(m_chroot + "/k"), soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    return zookeeper::line_in(format, answer->children);
  }
  void await_contenders(std::size_t number) const
  {
    wait_until([&] { return contenders().size() == number; }, std::to_string(number) + " contenders are in the line",
               30s);
  }
  [[nodiscard]] std::string first_owner() const
  {
    const auto format = m_format == "kazoo" ? NativeFormat::kazoo : NativeFormat::curator;
    return zookeeper::contender_in(format, contenders().front());
  }
  void remove(const std::string& node) const
  {
    const auto answer = m_client->ask(zookeeper::remove(m_chroot + "/k/" + node, zookeeper::any_version), soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    REQUIRE(answer->is_ok());
  }
  void put(const std::string& node) const
  {
    const auto answer =
        m_client->ask(zookeeper::create(m_chroot + "/k/" + node, {}, zookeeper::CreateMode::persistent, false), soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    REQUIRE(answer->is_ok());
  }
  [[nodiscard]] std::int64_t czxid(const std::string& node) const
  {
    const auto answer = m_client->ask(zookeeper::exists(m_chroot + "/k/" + node, false), soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    return answer->stat.czxid;
  }

 private:
  [[nodiscard]] CallLimits soon() const { return {.deadline = m_clock.now() + 10s, .stop = StopToken::never()}; }

  const std::string m_chroot;
  const std::string m_format;
  const Words m_native;
  std::optional<ZookeeperNodes> m_nodes;
  const BootClock m_clock;
  std::unique_ptr<zookeeper::Client> m_client;
};

constexpr Millis native_start{30'000};  // of a JVM on a busy machine

std::string until_exists(const fs::path& file) { return "until [ -e " + file.string() + " ]; do sleep 0.02; done"; }

Words shell(const std::string& line) { return {"sh", "-c", line}; }

std::string noting(const std::string& word) { return "echo " + word + " >> " + (home_dir() / "order").string(); }

std::string order() { return text_of(home_dir() / "order"); }

void create(const fs::path& file) { std::ofstream(file).flush(); }

void holder_stands(const std::string& format)
{
  const Line line(format);
  const auto go = home_dir() / "go";
  Process holder = line.start_rlock_run({}, shell("echo fence $RLOCK_FENCE; " + until_exists(go) + "; exit 7"));
  line.await_contenders(1);
  wait_until([&] { return has(holder.out(), "fence "); }, "the job runs");
  const std::string czxid = std::to_string(line.czxid(line.contenders().front()));
  CHECK(holder.out() == "fence " + czxid + "\n");
  create(go);
  CHECK_MESSAGE(holder.wait() == exited(7), holder.err());
  CHECK(holder.err().empty());
  CHECK(line.contenders().empty());
  CHECK(has(line.rlock({"history", "--json", "k"}).out, "\"fence\":" + czxid));
  const Finished next = line.rlock_run({}, shell("echo $RLOCK_FENCE"));
  CHECK(std::stoll(next.out) > std::stoll(czxid));
  const std::string events = line.rlock({"events", "--json", "-k", "k"}).out;
  CHECK_MESSAGE(has(events, "\"fence\":" + czxid + ","), events);
  CHECK_MESSAGE(has(events, "\"fence\":" + next.out.substr(0, next.out.find('\n')) + ","), events);
}

void native_waits(const std::string& format)
{
  const Line line(format, "/app/locks");
  const auto go = home_dir() / "go";
  Process holder = line.start_rlock_run({}, shell(noting("rlock") + "; " + until_exists(go) + "; " + noting("end")));
  line.await_contenders(1);
  Process native = line.start_native(shell(noting("native")));
  line.await_contenders(2);
  wait_until([&] { return order() == "rlock\n"; }, "the job runs");
  create(go);
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  CHECK(order() == "rlock\nend\nnative\n");
}

void rlock_waits(const std::string& format)
{
  const Line line(format);
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(until_exists(go) + "; " + noting("native")));
  line.await_contenders(1);
  const std::string owner = line.first_owner();
  Process waiter = line.start_rlock_run({}, shell(noting("rlock")));
  line.await_contenders(2);
  wait_until([&] { return has(waiter.err(), owner); }, "it says for whom it waits");
  const Finished status = line.rlock({"status", "--json", "k"});
  CHECK(status.code == 0);
  CHECK(has(status.out, "\"format\":\"" + line.format() + "\""));
  CHECK_MESSAGE(has(status.out, "\"owner\":\"" + owner + "\""), status.out);
  CHECK_MESSAGE(has(status.out, "\"place\":1"), status.out);
  const Finished shown = line.rlock({"status", "k"});
  CHECK(has(shown.out, "(format " + line.format() + ")"));
  CHECK(has(shown.out, "ends with the session of its client"));
  create(go);
  CHECK(native.wait(native_start) == success);
  CHECK_MESSAGE(waiter.wait() == success, waiter.err());
  CHECK(order() == "native\nrlock\n");
  CHECK(line.contenders().empty());
}

void no_wait(const std::string& format)
{
  const Line line(format);
  const auto go = home_dir() / "go";
  Process native = line.start_native(shell(until_exists(go)));
  line.await_contenders(1);
  const Finished busy = line.rlock_run({"-n"}, {"true"});
  CHECK_MESSAGE(busy.code == 75, busy.err);
  CHECK(has(busy.err, line.first_owner()));
  CHECK(line.contenders().size() == 1);
  const Finished late = line.rlock_run({"-w", "700ms"}, {"true"});
  CHECK_MESSAGE(late.code == 75, late.err);
  CHECK(line.contenders().size() == 1);
  CHECK(has(line.rlock({"history", "k"}).out, "skipped"));
  create(go);
  CHECK(native.wait(native_start) == success);
  CHECK(line.rlock({"status", "k"}).code == 1);
  CHECK(line.rlock_run({"-n"}, {"true"}).code == 0);
}

void alternating(const std::string& format)
{
  const Line line(format);
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
        return has(line.rlock({"status", "--json", "k"}).out, "\"place\":2");
      },
      "the fifth is in the queue");
  create(go);
  for (Process* each : {&first, &second, &third, &fourth, &fifth}) {
    CHECK_MESSAGE(each->wait(native_start) == success, each->err());
  }
  CHECK(order() == "1\n2\n3\n4\n5\n");
  wait_until([&] { return line.contenders().empty(); }, "the line is empty");
}

void called_into_line(const std::string& format)
{
  const Line line(format);
  const auto go = home_dir() / "go";
  const auto end = home_dir() / "end";
  Process first = line.start_rlock_run({}, shell(until_exists(go)));
  line.await_contenders(1);
  Process second = line.start_rlock_run({}, shell(noting("2") + "; " + until_exists(end)));
  line.await_contenders(2);
  Process third = line.start_rlock_run({}, shell(noting("3")));
  wait_until(
      [&] {
        return has(line.rlock({"status", "--json", "k"}).out, "\"place\":2");
      },
      "the third is in the queue");
  CHECK(line.contenders().size() == 2);
  create(go);
  CHECK(first.wait() == success);
  wait_until([&] { return order() == "2\n"; }, "the second runs");
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

void no_overlap(const std::string& format)
{
  const Line line(format);
  const auto busy = home_dir() / "busy";
  const std::string job = "mkdir " + busy.string() + " || echo overlap >> " + (home_dir() / "overlaps").string() +
                          "; sleep 0.1; rmdir " + busy.string() + "; " + noting("x");
  std::vector<Process> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(line.start_rlock_run({}, shell(job)));
    all.push_back(line.start_native(shell(job)));
  }
  expect_ends(all, 60s);
  CHECK(text_of(home_dir() / "overlaps").empty());
  CHECK(std::ranges::count(order(), 'x') == 6);
  CHECK(line.contenders().empty());
}

void killed_native(const std::string& format)
{
  const Line line(format);
  Process native = line.start_native({"sleep", "60"}, 2s);
  line.await_contenders(1);
  Process waiter = line.start_rlock_run({}, {"true"});
  line.await_contenders(2);
  native.signal(SIGKILL);
  CHECK_MESSAGE(waiter.wait(20s) == success, waiter.err());
}

void killed_runner(const std::string& format, bool stops)
{
  const Line line(format);
  const auto alive = home_dir() / "alive";
  Process holder = line.start_rlock_run({"--ttl", "3s"}, {"flock", alive.string(), "sleep", "60"});
  line.await_contenders(1);
  Process native = line.start_native({"flock", "-n", alive.string(), "true"});
  line.await_contenders(2);
  stops ? stop_process(holder.pid()) : holder.signal(SIGKILL);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  holder.signal(SIGCONT);
}

void killed_waiter(const std::string& format)
{
  const Line line(format);
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

void lost_contender(const std::string& format)
{
  const Line line(format);
  Process holder = line.start_rlock_run({"--ttl", "60s"}, shell(noting("runs") + "; exec sleep 60"));
  wait_until([&] { return order() == "runs\n"; }, "the job runs");
  line.remove(line.contenders().front());
  CHECK_MESSAGE(holder.wait() == exited(121), holder.err());
  CHECK(has(holder.err(), "was lost"));
  CHECK(line.rlock_run({"-w", "10s"}, {"true"}).code == 0);
}

void shown_native(const std::string& format)
{
  const Line line(format);
  Process native = line.start_native({"sleep", "60"});
  line.await_contenders(1);
  const std::string owner = line.first_owner();
  CHECK(has(line.rlock({"status", "k"}).out, owner));
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

void among_rlocks(const std::string& format)
{
  const Line line(format);
  const auto go = home_dir() / "go";
  SUBCASE("the next ones stand in the line one after the other, and run in their order")
  {
    Process first = line.start_rlock_run({"--ttl", "40s"}, shell(until_exists(go)));
    line.await_contenders(1);
    std::vector<Process> waiters;
    for (int i = 1; i <= 3; ++i) {  // a ttl that is longer than that of a waiter without the format
      waiters.push_back(line.start_rlock_run({"--ttl", "40s"}, shell(noting(std::to_string(i)))));
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
  SUBCASE("a lease without a process ends with its session, which no other process can renew")
  {
    const Finished taken = line.rlock({"acquire", "--format", line.format(), "-k", "k", "--lease", "60s"});
    REQUIRE_MESSAGE(taken.code == 0, taken.err);
    const std::string token = taken.out.substr(0, taken.out.find('\n'));
    line.await_contenders(1);
    CHECK(line.rlock({"check", "-k", "k", "--token", token}).code == 0);
    const Finished renewed = line.rlock({"renew", "-k", "k", "--token", token, "--lease", "60s"});
    CHECK(renewed.code == 78);
    CHECK(has(renewed.err, "acquire --pid"));
    CHECK(line.rlock({"release", "-k", "k", "--token", token}).code == 0);
    CHECK(line.contenders().empty());
  }
}

void forced_rlock(const std::string& format)
{
  const Line line(format);
  const Finished taken = line.rlock({"acquire", "--format", line.format(), "-k", "k", "--lease", "60s"});
  REQUIRE_MESSAGE(taken.code == 0, taken.err);
  line.await_contenders(1);
  CHECK(line.rlock({"force-unlock", "-k", "k", "--yes", "--now"}).code == 0);
  CHECK(line.contenders().empty());
}

void doctor_names(const std::string& format)
{
  const Line line(format);
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  CHECK_FALSE(has(line.rlock({"doctor"}).out, "Curator and kazoo"));
  line.put("_c_00000000-0000-4000-8000-000000000000-lock-0000000007");
  line.put("00000000000040008000000000000000__lock__0000000008");
  CHECK(has(line.rlock({"doctor"}).out, "Curator and kazoo"));
}

void refused_beside_read_write(const std::string& kind)
{
  const Line line("curator");
  const auto go = home_dir() / "go";
  Process native = line.start_read_write(kind, shell(noting("native") + "; " + until_exists(go)));
  wait_until([&] { return order() == "native\n"; }, "the native client runs", native_start);
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

void keeps_format(const std::string& format)
{
  const Line line(format);
  const std::string other = line.format() == "kazoo" ? "curator" : "kazoo";
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  const Finished mixed = line.rlock({"run", "--format", other, "-k", "k", "--", "true"});
  CHECK(mixed.code == 78);
  CHECK(has(mixed.err, "try --format " + line.format()));
  const Finished shared = line.rlock({"run", "-s", "-k", "k", "--", "true"});
  CHECK(shared.code == 78);
  CHECK(has(shared.err, "in which it has one holder at a time"));
}

}  // namespace

TEST_CASE("kazoo format: the line stays as it is when the leader is killed")
{
  Line line("kazoo", "", 3);
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

TEST_CASE("native format of ZooKeeper: what cannot be is refused, with the reason")
{
  const auto run = [](const Words& options) { return run_rlock(joined(joined({"run"}, options), {"--", "true"})); };
  for (const std::string format : {"curator", "kazoo"}) {
    for (const char* url : {"redis://127.0.0.1:1", "etcd://127.0.0.1:1"}) {
      const Finished refused = run({"-S", url, "--format", format, "-k", "k"});
      CHECK(refused.code == 64);
      CHECK(has(refused.err, "--format " + format + " is for locks in ZooKeeper"));
    }
    const Finished shared = run({"-S", "zookeeper://127.0.0.1:1", "--format", format, "-k", "k", "-s"});
    CHECK(shared.code == 64);
    const Finished held = run({"-S", "zookeeper://127.0.0.1:1", "--format", format, "-k", "k", "--min-hold", "1s"});
    CHECK(held.code == 64);
    CHECK(has(held.err, "--min-hold"));
  }
  const ZookeeperNodes nodes;
  for (const char* key : {"rlock", "/rlock/locks", "a//b", "a/", "a/../b", "zookeeper/k"}) {
    const Finished refused = run({"-S", nodes.url(), "--format", "curator", "-k", key});
    CAPTURE(key);
    CHECK_MESSAGE(refused.code == 78, refused.err);
  }
  CHECK(run({"-S", nodes.url(), "--format", "curator", "-k", "/jobs/stock"}).code == 0);
}

TEST_CASE("curator format: the holder stands in the line, and nothing is left after its release")
{
  holder_stands("curator");
}
TEST_CASE("curator format: a native client waits for rlock, also below a chroot") { native_waits("curator"); }
TEST_CASE("curator format: rlock waits for a native client, says so, and starts when it is gone")
{
  rlock_waits("curator");
}
TEST_CASE("curator format: a caller that does not wait is busy at once, and leaves no contender")
{
  no_wait("curator");
}
TEST_CASE("curator format: five alternating contenders run in the order of their arrival") { alternating("curator"); }
TEST_CASE("curator format: no two jobs overlap where rlocks and native clients contend") { no_overlap("curator"); }
TEST_CASE("curator format: after kill -9 of a native client its session ends, and rlock runs")
{
  killed_native("curator");
}
TEST_CASE("curator format: the job of a killed runner is dead before a native client runs")
{
  killed_runner("curator", false);
}
TEST_CASE("curator format: the job of a stopped runner is dead before a native client runs")
{
  killed_runner("curator", true);
}
TEST_CASE("curator format: after kill -9 of a waiter its contender ends with its session") { killed_waiter("curator"); }
TEST_CASE("curator format: a holder whose contender is deleted has lost the lock") { lost_contender("curator"); }
TEST_CASE("curator format: list, status and force-unlock know a native holder, also one that no rlock knows")
{
  shown_native("curator");
}
TEST_CASE("curator format: rlocks hand over, nest and give back as without it") { among_rlocks("curator"); }
TEST_CASE("curator format: rlock force-unlock takes the lock from an rlock in the line") { forced_rlock("curator"); }
TEST_CASE("curator format: doctor names lines in which clients of both formats stand") { doctor_names("curator"); }
TEST_CASE("curator format: a lock keeps its format, and has no other") { keeps_format("curator"); }
TEST_CASE(
    "curator format: a second waiter stands in the line when it has become the first, before a native client that "
    "comes later")
{
  called_into_line("curator");
}
TEST_CASE("curator format: a lock is refused where a reader of Curator stands") { refused_beside_read_write("read"); }
TEST_CASE("curator format: a lock is refused where a writer of Curator stands") { refused_beside_read_write("write"); }
TEST_CASE("kazoo format: the holder stands in the line, and nothing is left after its release")
{
  holder_stands("kazoo");
}
TEST_CASE("kazoo format: a native client waits for rlock, also below a chroot") { native_waits("kazoo"); }
TEST_CASE("kazoo format: rlock waits for a native client, says so, and starts when it is gone")
{
  rlock_waits("kazoo");
}
TEST_CASE("kazoo format: a caller that does not wait is busy at once, and leaves no contender") { no_wait("kazoo"); }
TEST_CASE("kazoo format: five alternating contenders run in the order of their arrival") { alternating("kazoo"); }
TEST_CASE("kazoo format: no two jobs overlap where rlocks and native clients contend") { no_overlap("kazoo"); }
TEST_CASE("kazoo format: after kill -9 of a native client its session ends, and rlock runs") { killed_native("kazoo"); }
TEST_CASE("kazoo format: the job of a killed runner is dead before a native client runs")
{
  killed_runner("kazoo", false);
}
TEST_CASE("kazoo format: the job of a stopped runner is dead before a native client runs")
{
  killed_runner("kazoo", true);
}
TEST_CASE("kazoo format: after kill -9 of a waiter its contender ends with its session") { killed_waiter("kazoo"); }
TEST_CASE("kazoo format: a holder whose contender is deleted has lost the lock") { lost_contender("kazoo"); }
TEST_CASE("kazoo format: list, status and force-unlock know a native holder, also one that no rlock knows")
{
  shown_native("kazoo");
}
TEST_CASE("kazoo format: rlocks hand over, nest and give back as without it") { among_rlocks("kazoo"); }
TEST_CASE("kazoo format: rlock force-unlock takes the lock from an rlock in the line") { forced_rlock("kazoo"); }
TEST_CASE("kazoo format: doctor names lines in which clients of both formats stand") { doctor_names("kazoo"); }
TEST_CASE("kazoo format: a lock keeps its format, and has no other") { keeps_format("kazoo"); }
TEST_CASE(
    "kazoo format: a second waiter stands in the line when it has become the first, before a native client that comes "
    "later")
{
  called_into_line("kazoo");
}
