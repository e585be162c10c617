// SPDX-License-Identifier: Apache-2.0
// rlock --format curator with -s and -x beside InterProcessReadWriteLock of Curator.
#include "support/native_scenarios.h"

#include <algorithm>
#include <csignal>

using namespace rlock::test;

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
  NativeHolder native(line.start_curator(kind, NativeHolder::job()));
  const std::string node = line.contenders().front();
  expect_end(line.rlock_run({"-w", "20s"}, shell(noting("overlap"))), 78, {err_has("cannot exclude " + node)});
  CHECK(line.rlock_run({"-n"}, shell(noting("overlap"))).code != 0);
  CHECK(line.contenders() == std::vector<std::string>{node});
  native.end();
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

TEST_CASE("curator read-write: a reader that may not pass a waiting writer of rlock is told who holds the lock")
{
  const ZookeeperLine line = read_write();
  NativeHolder native(line.start_curator("read", NativeHolder::job()));
  const std::string owner = line.first_owner();
  Process writer = line.start_rlock_run(writes, shell(noting("rlock")));
  line.await_contenders(2);
  expect_end(line.rlock_run({"-s", "-n"}, {"true"}), 75, {err_has(owner)});
  native.end();
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
  NativeHolder native(line.start_curator("read", NativeHolder::job()));
  Process waiter = line.start_rlock_run({"-x", "--ttl", "2s"}, {"true"});
  line.await_contenders(2);
  waiter.signal(SIGKILL);
  const Finished reader = line.rlock_run({"-s", "-w", "20s"}, {"true"});
  CHECK_MESSAGE(reader.code == 0, reader.err);
  CHECK(native.process.running());
  native.end();
}

TEST_CASE("curator read-write: status, list and ttl show readers of both sides; force-unlock takes it from one")
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
  expect_has(status, {"\"owner\":\"" + owner + "\"", "\"mode\":\"shared\"", "\"format\":\"curator\"", "\"place\":1"});
  const std::string shown = line.rlock({"status", "k"}).out;
  expect_has(shown, {", shared (format curator)", owner, "sleep 60"});
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
  NativeHolder native(line.start_curator("read", NativeHolder::job()));
  const Finished taken = succeeded(line.rlock({"acquire", "-s", "--format", "curator", "-k", "k", "--lease", "60s"}));
  const std::string token = first_line(taken.out);
  line.await_contenders(2);
  CHECK(line.rlock({"check", "-k", "k", "--token", token}).code == 0);
  const Finished forced = line.rlock({"force-unlock", "-k", "k", "--token", token, "--yes", "--now"});
  CHECK_MESSAGE(forced.code == 0, forced.err);
  line.await_contenders(1);
  CHECK(native.process.running());
  native.end();
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
  NativeHolder native(line.start_curator("write", NativeHolder::job()));
  CHECK(line.rlock({"run", "-s", "-n", "-k", "k", "--", "true"}).code == 75);
  Process reader = start_rlock(line.with_server({"run", "-s", "-k", "k", "--", "true"}));
  line.await_contenders(2);
  native.end();
  CHECK_MESSAGE(reader.wait() == success, reader.err());
}

TEST_CASE("curator read-write: a reader without the format ends before one with it begins, and before a writer")
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
    expect_end(line.rlock(joined(joined({"run", "-k", "k"}, options), {"--", "true"})), 78,
               {err_has("try --format curator with --shared or --exclusive")});
  }
}

TEST_CASE("curator read-write: a lock without readers keeps its format")
{
  const ZookeeperLine line(NativeFormat::curator);
  CHECK(line.rlock_run({}, {"true"}).code == 0);
  for (const char* mode : {"-s", "-x"}) {
    expect_end(line.rlock_run({mode}, {"true"}), 78, {err_has("has the format curator")});
  }
}

TEST_CASE("curator read-write: a lock is refused where an InterProcessMutex stands")
{
  const ZookeeperLine line = read_write();
  NativeHolder native(line.start_curator("mutex", NativeHolder::job()));
  for (const char* mode : {"-s", "-x"}) {
    expect_end(line.rlock_run({mode, "-w", "20s"}, shell(noting("overlap"))), 78, {err_has("InterProcessMutex")});
  }
  native.end();
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
