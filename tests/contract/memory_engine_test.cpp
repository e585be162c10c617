// SPDX-License-Identifier: Apache-2.0
// An engine that only the test program has: the verbs of rlock work on it, by its row in the table of engines.
#include "base/log.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "process/signals.h"
#include "support/integration.h"
#include "support/memory_backend.h"
#include "support/memory_store.h"

#include <iostream>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

using Words = std::vector<std::string>;

const std::string url = "memory:engine";
const std::string sessions_url = "memory-sessions:engine";
const BootClock boot_clock;

// What main does with the words, in this process.
int rlock_here(Words words, const std::string& server = url)
{
  Signals signals;
  const cli::Environment environment({"PATH=/usr/bin:/bin", "RLOCK_SERVER=" + server});
  const Result<RunEnd> end = cli::dispatch(words, environment, signals);
  REQUIRE(cli::finish_output());
  if (!end) {
    Log(Verbosity::normal).error(end.error().text);
    finish_log();
    return static_cast<int>(exit_code_of(end.error().code));
  }
  const auto* exit = std::get_if<ExitWith>(&*end);
  return exit != nullptr ? exit->code : -1;
}

struct ChildEnd {
  int code;
  std::string out;
  std::string err;
};

// A child begins with the locks that this process has at the moment; what it changes stays with it.
ChildEnd in_a_child(const std::function<int()>& act)
{
  const std::filesystem::path dir = make_temp_dir("engine");
  const std::string out = dir / "out";
  const std::string err = dir / "err";
  std::cout.flush();  // what the test program has printed is not the child's to print
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    ::_exit(act());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), text_of(out), text_of(err)};
}
ChildEnd rlock_in_a_child(const Words& words, const std::string& server = url)
{
  return in_a_child([&] { return rlock_here(words, server); });
}

// `k` on the memory server, held by this process.
struct HeldLock {
  HeldLock()
  {
    add_memory_engine();
    REQUIRE(store->acquire(spec, owner, {}, soon()));
  }
  ~HeldLock() { [[maybe_unused]] const auto released = store->release(spec, owner, {}, soon()); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

  static CallLimits soon() { return {.deadline = boot_clock.now() + 5s, .stop = StopToken::never()}; }

  std::unique_ptr<LockStore> store = memory_store("engine", boot_clock);
  Owner owner = Owner::of("0d7a2b44-63a9-4b6c-8a49-6f0b8a0e8f55:71");
  LockSpec spec{.name = *LockName::parse("k"),
                .kind = Plain{},
                .ttl = 30s,
                .who = {.host = "web1", .pid = 71, .user = "alice", .command = "./job.sh", .automatic = true},
                .once = {}};
};

}  // namespace

TEST_CASE("memory engine: run takes the lock, keeps it while the job runs, and releases it")
{
  add_memory_engine();
  const ChildEnd end = in_a_child([] {
    const int ran = rlock_here({"run", "-k", "k", "--ttl", "3s", "--", "sh", "-c", "sleep 4; echo fence $RLOCK_FENCE"});
    const int free = rlock_here({"status", "k"});
    return ran == 0 && free == 1 ? 0 : 100 + ran;
  });
  CHECK(end.code == 0);
  CHECK(end.out == "fence 1\nk: free\n");
  CHECK(end.err.empty());
}

TEST_CASE("memory engine: run is refused a lock that is held, or waits for it")
{
  const HeldLock held;
  CHECK(rlock_in_a_child({"run", "-n", "-k", "k", "--", "true"}).code == 75);
  const ChildEnd end = rlock_in_a_child({"run", "-w", "300ms", "-k", "k", "--", "true"});
  CHECK(end.code == 75);
  CHECK(has(end.err, "alice@web1"));
}

TEST_CASE("memory engine: status and list show the holder")
{
  const HeldLock held;
  const ChildEnd status = rlock_in_a_child({"status", "k"});
  CHECK(status.code == 0);
  CHECK(status.out.find("k: held\n") == 0);
  CHECK(has(status.out, "alice@web1 (pid 71)"));
  const ChildEnd list = rlock_in_a_child({"list"});
  CHECK(list.code == 0);
  CHECK(has(list.out, "./job.sh"));
  CHECK(rlock_in_a_child({"list", "other:*"}).code == 1);
}

TEST_CASE("memory engine: force-unlock takes the lock away")
{
  const HeldLock held;
  const ChildEnd end = in_a_child([] {
    const int forced = rlock_here({"force-unlock", "-k", "k", "--yes", "--now"});
    return forced == 0 ? rlock_here({"status", "k"}) : 100;
  });
  CHECK(end.code == 1);  // free
  CHECK(end.out.find("k: broken; it was held by alice@web1") == 0);
}

TEST_CASE("memory engine: what it does not offer ends with 78 and one line that says so")
{
  add_memory_engine();
  for (const Words& words : {Words{"events"}, Words{"forget", "k"},
                             Words{"once", "--for", "1h", "-k", "k", "--", "true"}, Words{"doctor"}}) {
    const ChildEnd end = rlock_in_a_child(words);
    CHECK(end.code == 78);
    CHECK(end.err == "rlock: rlock " + words.front() +
                         ": the server memory:engine does not offer it (give another server with -S)\n");
  }
  CHECK(rlock_in_a_child({"run", "-S", "memory:a", "-S", "memory:b", "-k", "k", "--", "true"}).code == 78);
  CHECK(rlock_in_a_child({"run", "--sync", "1", "-k", "k", "--", "true"}).code == 78);
}

TEST_CASE("memory engine: bench measures it")
{
  add_memory_engine();
  const ChildEnd end = rlock_in_a_child({"bench", "--for", "20ms", "--connections", "2"});
  CHECK(end.code == 0);
  CHECK(has(end.out, "hand_over"));
}

TEST_CASE("memory engine with sessions: run keeps its session alive while the job runs")
{
  add_memory_engine();
  const ChildEnd end =
      rlock_in_a_child({"run", "-k", "k", "--ttl", "1s", "--", "sh", "-c", "sleep 2; echo done"}, sessions_url);
  CHECK(end.code == 0);
  CHECK(end.out == "done\n");
  CHECK(end.err.empty());
}

TEST_CASE(
    "memory engine with sessions: a job is dead before its session ends, not before the lease that was asked for does")
{
  add_memory_engine();
  const Instant began = boot_clock.now();
  const ChildEnd end = rlock_in_a_child({"run", "-k", "k", "--lease", "8s", "--", "sleep", "20"}, sessions_url);
  const auto took = boot_clock.now() - began;
  CHECK(end.code == 124);
  CHECK(took < 5800ms);  // the session of 6 s began 400 ms before
  CHECK(took > 2s);
}

TEST_CASE("memory engine with sessions: the job is told the lease that was granted, not the one that was asked for")
{
  add_memory_engine();
  for (const std::string option : {"--lease", "--ttl"}) {
    const ChildEnd end =
        rlock_in_a_child({"run", "-k", "k", option, "8s", "--", "sh", "-c", "echo $RLOCK_LEASE_MS"}, sessions_url);
    CHECK(end.code == 0);
    CHECK(end.out == "6000\n");
    CHECK(end.err.empty());
  }
}

TEST_CASE("memory engine with sessions: what needs a lock without a process ends with 78 and says why")
{
  add_memory_engine();
  const std::string other_server = " (give another server with -S)\n";
  const std::string server = ": the server memory-sessions:engine does not offer it, because ";
  const ChildEnd kept = rlock_in_a_child({"run", "-k", "k", "--min-hold", "1s", "--", "true"}, sessions_url);
  CHECK(kept.code == 78);
  CHECK(kept.err == "rlock: rlock run --min-hold" + server + "its locks end with their release" + other_server);
  const std::string ends = "its locks end with the process that took them";
  const ChildEnd acquired = rlock_in_a_child({"acquire", "-k", "k", "--lease", "1m"}, sessions_url);
  CHECK(acquired.code == 78);
  CHECK(acquired.err == "rlock: rlock acquire without --pid" + server + ends + other_server);
  const ChildEnd renewed =
      rlock_in_a_child({"renew", "-k", "k", "--token", "0d7a2b44-63a9-4b6c-8a49-6f0b8a0e8f55:71"}, sessions_url);
  CHECK(renewed.code == 78);
  CHECK(renewed.err == "rlock: rlock renew" + server + ends + other_server);
}

TEST_CASE("record engine with sessions: run keeps its session alive while the job runs, and then releases")
{
  add_record_engine();
  const ChildEnd end = in_a_child([] {
    const std::string server = "record-sessions:run";
    const int ran =
        rlock_here({"run", "-k", "k", "--ttl", "2s", "--", "sh", "-c", "sleep 4; echo $RLOCK_LEASE_MS"}, server);
    return ran == 0 ? rlock_here({"status", "k"}, server) : 100 + ran;
  });
  CHECK(end.code == 1);
  CHECK(has(end.out, "2000\nk: free"));
  CHECK(end.err.empty());
}

TEST_CASE("record engine with sessions: run waits in line, and --min-hold keeps the lock")
{
  add_record_engine();
  const ChildEnd end = in_a_child([] {
    const std::string server = "record-sessions:min-hold";
    const int ran = rlock_here({"run", "-k", "k", "--min-hold", "3s", "--", "true"}, server);
    const int busy = rlock_here({"run", "-n", "-q", "-k", "k", "--", "true"}, server);
    const int waited = rlock_here({"run", "-w", "10s", "-k", "k", "--", "true"}, server);
    return ran == 0 && busy == 75 ? waited : 100;
  });
  CHECK(end.code == 0);
}

TEST_CASE("record engine with sessions: a lock that was acquired for a time is renewed and released by its token")
{
  add_record_engine();
  const ChildEnd end = in_a_child([] {
    const std::string server = "record-sessions:token";
    const std::string token = "0d7a2b44-63a9-4b6c-8a49-6f0b8a0e8f55:71";
    const int acquired = rlock_here({"acquire", "-k", "k", "--lease", "1m"}, server);
    const int busy = rlock_here({"run", "-n", "-q", "-k", "k", "--", "true"}, server);
    const int other = rlock_here({"renew", "-k", "k", "--token", token}, server);
    return acquired == 0 && busy == 75 && other == 1 ? rlock_here({"force-unlock", "-k", "k", "--yes", "--now"}, server)
                                                     : 100;
  });
  CHECK(end.code == 0);
  CHECK(has(end.out, "k: broken"));
}
