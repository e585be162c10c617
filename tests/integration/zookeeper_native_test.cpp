// SPDX-License-Identifier: Apache-2.0
// rlock --format curator and kazoo beside the real InterProcessMutex of Curator and the real Lock of kazoo.
#include <algorithm>
#include <csignal>
#include "support/history_reader.h"
#include "support/integration.h"
#include "support/zookeeper_fixture.h"
#include "support/zookeeper_line.h"

using namespace rlock::test;

namespace {

void holder_stands(NativeFormat format)
{
  const ZookeeperLine line(format);
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

void native_waits(NativeFormat format)
{
  const ZookeeperLine line(format, "/app/locks");
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

void rlock_waits(NativeFormat format)
{
  const ZookeeperLine line(format);
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

void no_wait(NativeFormat format)
{
  const ZookeeperLine line(format);
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

void alternating(NativeFormat format)
{
  const ZookeeperLine line(format);
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
    CHECK_MESSAGE(each->wait(native_start) == success, each->err());
  }
  CHECK(order() == "1\n2\n3\n4\n5\n");
  wait_until([&] { return line.contenders().empty(); }, "the line is empty");
}

void called_into_line(NativeFormat format)
{
  const ZookeeperLine line(format);
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

void no_overlap(NativeFormat format)
{
  const ZookeeperLine line(format);
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

void killed_native(NativeFormat format)
{
  const ZookeeperLine line(format);
  Process native = line.start_native({"sleep", "60"}, 2s);
  line.await_contenders(1);
  Process waiter = line.start_rlock_run({}, {"true"});
  line.await_contenders(2);
  native.signal(SIGKILL);
  CHECK_MESSAGE(waiter.wait(20s) == success, waiter.err());
}

void killed_runner(NativeFormat format, bool stops)
{
  const ZookeeperLine line(format);
  const auto alive = home_dir() / "alive";
  Process holder = line.start_rlock_run({"--ttl", "3s"}, {"flock", alive.string(), "sleep", "60"});
  line.await_contenders(1);
  Process native = line.start_native({"flock", "-n", alive.string(), "true"});
  line.await_contenders(2);
  stops ? stop_process(holder.pid()) : holder.signal(SIGKILL);
  CHECK_MESSAGE(native.wait(native_start) == success, native.err());
  holder.signal(SIGCONT);
}

void killed_waiter(NativeFormat format)
{
  const ZookeeperLine line(format);
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

void lost_contender(NativeFormat format)
{
  const ZookeeperLine line(format);
  Process holder = line.start_rlock_run({"--ttl", "60s"}, shell(noting("runs") + "; exec sleep 60"));
  wait_until([&] { return order() == "runs\n"; }, "the job runs");
  line.remove(line.contenders().front());
  CHECK_MESSAGE(holder.wait() == exited(121), holder.err());
  CHECK(has(holder.err(), "was lost"));
  CHECK(line.rlock_run({"-w", "10s"}, {"true"}).code == 0);
}

void shown_native(NativeFormat format)
{
  const ZookeeperLine line(format);
  Process native = line.start_native({"sleep", "60"});
  line.await_contenders(1);
  const std::string owner = line.first_owner();
  CHECK(has(line.rlock({"status", "k"}).out, owner));
  const Finished forgotten = line.rlock({"run", "-n", "-k", "k", "--", "true"});
  CHECK(forgotten.code == 78);
  CHECK_MESSAGE(has(forgotten.err, "(try --format " + line.format() + "; rflock takes no --format, rlock run does)"),
                forgotten.err);
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

void among_rlocks(NativeFormat format)
{
  const ZookeeperLine line(format);
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

void forced_rlock(NativeFormat format)
{
  const ZookeeperLine line(format);
  const Finished taken = line.rlock({"acquire", "--format", line.format(), "-k", "k", "--lease", "60s"});
  REQUIRE_MESSAGE(taken.code == 0, taken.err);
  line.await_contenders(1);
  CHECK(line.rlock({"force-unlock", "-k", "k", "--yes", "--now"}).code == 0);
  CHECK(line.contenders().empty());
}

void doctor_names(NativeFormat format)
{
  const ZookeeperLine line(format);
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  CHECK_FALSE(has(line.rlock({"doctor"}).out, "Curator and kazoo"));
  line.put("_c_00000000-0000-4000-8000-000000000000-lock-0000000007");
  line.put("00000000000040008000000000000000__lock__0000000008");
  CHECK(has(line.rlock({"doctor"}).out, "Curator and kazoo"));
}

void keeps_format(NativeFormat format)
{
  const ZookeeperLine line(format);
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
  ZookeeperLine line(NativeFormat::kazoo, "", 3);
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
    const Finished permits = run({"-S", "zookeeper://127.0.0.1:1", "--format", format, "-k", "k", "--permits", "2"});
    CHECK(permits.code == 64);
    CHECK(has(permits.err, "exclude each other"));
    const Finished held = run({"-S", "zookeeper://127.0.0.1:1", "--format", format, "-k", "k", "--min-hold", "1s"});
    CHECK(held.code == 64);
    CHECK(has(held.err, "--min-hold"));
  }
  for (const char* mode : {"-s", "-x"}) {
    const Finished refused = run({"-S", "zookeeper://127.0.0.1:1", "--format", "kazoo", "-k", "k", mode});
    CHECK(refused.code == 64);
    CHECK(has(refused.err, "exclude each other"));
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
  holder_stands(NativeFormat::curator);
}
TEST_CASE("curator format: a native client waits for rlock, also below a chroot")
{
  native_waits(NativeFormat::curator);
}
TEST_CASE("curator format: rlock waits for a native client, says so, and starts when it is gone")
{
  rlock_waits(NativeFormat::curator);
}
TEST_CASE("curator format: a caller that does not wait is busy at once, and leaves no contender")
{
  no_wait(NativeFormat::curator);
}
TEST_CASE("curator format: five alternating contenders run in the order of their arrival")
{
  alternating(NativeFormat::curator);
}
TEST_CASE("curator format: no two jobs overlap where rlocks and native clients contend")
{
  no_overlap(NativeFormat::curator);
}
TEST_CASE("curator format: after kill -9 of a native client its session ends, and rlock runs")
{
  killed_native(NativeFormat::curator);
}
TEST_CASE("curator format: the job of a killed runner is dead before a native client runs")
{
  killed_runner(NativeFormat::curator, false);
}
TEST_CASE("curator format: the job of a stopped runner is dead before a native client runs")
{
  killed_runner(NativeFormat::curator, true);
}
TEST_CASE("curator format: after kill -9 of a waiter its contender ends with its session")
{
  killed_waiter(NativeFormat::curator);
}
TEST_CASE("curator format: a holder whose contender is deleted has lost the lock")
{
  lost_contender(NativeFormat::curator);
}
TEST_CASE("curator format: list, status and force-unlock know a native holder, also one that no rlock knows")
{
  shown_native(NativeFormat::curator);
}
TEST_CASE("curator format: rlocks hand over, nest and give back as without it") { among_rlocks(NativeFormat::curator); }
TEST_CASE("curator format: rlock force-unlock takes the lock from an rlock in the line")
{
  forced_rlock(NativeFormat::curator);
}
TEST_CASE("curator format: doctor names lines in which clients of both formats stand")
{
  doctor_names(NativeFormat::curator);
}
TEST_CASE("curator format: a lock keeps its format, and has no other") { keeps_format(NativeFormat::curator); }
TEST_CASE(
    "curator format: a second waiter stands in the line when it has become the first, before a native client that "
    "comes later")
{
  called_into_line(NativeFormat::curator);
}
TEST_CASE("kazoo format: the holder stands in the line, and nothing is left after its release")
{
  holder_stands(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: a native client waits for rlock, also below a chroot") { native_waits(NativeFormat::kazoo); }
TEST_CASE("kazoo format: rlock waits for a native client, says so, and starts when it is gone")
{
  rlock_waits(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: a caller that does not wait is busy at once, and leaves no contender")
{
  no_wait(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: five alternating contenders run in the order of their arrival")
{
  alternating(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: no two jobs overlap where rlocks and native clients contend")
{
  no_overlap(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: after kill -9 of a native client its session ends, and rlock runs")
{
  killed_native(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: the job of a killed runner is dead before a native client runs")
{
  killed_runner(NativeFormat::kazoo, false);
}
TEST_CASE("kazoo format: the job of a stopped runner is dead before a native client runs")
{
  killed_runner(NativeFormat::kazoo, true);
}
TEST_CASE("kazoo format: after kill -9 of a waiter its contender ends with its session")
{
  killed_waiter(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: a holder whose contender is deleted has lost the lock")
{
  lost_contender(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: list, status and force-unlock know a native holder, also one that no rlock knows")
{
  shown_native(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: rlocks hand over, nest and give back as without it") { among_rlocks(NativeFormat::kazoo); }
TEST_CASE("kazoo format: rlock force-unlock takes the lock from an rlock in the line")
{
  forced_rlock(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: doctor names lines in which clients of both formats stand")
{
  doctor_names(NativeFormat::kazoo);
}
TEST_CASE("kazoo format: a lock keeps its format, and has no other") { keeps_format(NativeFormat::kazoo); }
TEST_CASE(
    "kazoo format: a second waiter stands in the line when it has become the first, before a native client that comes "
    "later")
{
  called_into_line(NativeFormat::kazoo);
}
