// SPDX-License-Identifier: Apache-2.0
// Engines that only the test program has: the verbs of rlock work on them, by their rows in the table of engines.
#include "base/log.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "process/signals.h"
#include "stores/open.h"
#include "support/bare_store.h"
#include "support/integration.h"
#include "support/memory_backend.h"

#include <iostream>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

using Words = std::vector<std::string>;

const BootClock boot_clock;

// What main does with the words, in this process.
int rlock_here(Words words, const std::string& server)
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
ChildEnd rlock_in_a_child(const Words& words, const std::string& server)
{
  return in_a_child([&] { return rlock_here(words, server); });
}

// An engine whose store answers nothing and offers only what every engine must.
void add_bare_engine()
{
  static const bool once = [] {
    add_engine({.name = "bare",
                .parse = [](std::string_view url) -> Result<Endpoint> {
                  Endpoint endpoint;
                  endpoint.scheme = "bare";
                  endpoint.kind = Endpoint::Kind::other;
                  endpoint.path = url.substr(url.find(':') + 1);
                  return endpoint;
                },
                .open = [](const ServerSpec&, const Endpoint&, const Clock&,
                           StopToken) { return Result<std::unique_ptr<LockStore>>(std::make_unique<BareStore>()); }});
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

TEST_CASE("bare engine: a verb that needs what the store does not offer ends with 78 and one line that says so")
{
  add_bare_engine();
  const std::string server = "bare:engine";
  for (const Words& words :
       {Words{"forget", "k"}, Words{"list"}, Words{"history"}, Words{"thaw", "--all"}, Words{"events"}}) {
    CAPTURE(words.front());
    const ChildEnd end = rlock_in_a_child(words, server);
    CHECK(end.code == 78);
    CHECK(end.err == "rlock: the server does not offer what this verb needs (give another server with -S)\n");
  }
  CHECK(rlock_in_a_child({"run", "-S", "bare:a", "-S", "bare:b", "-k", "k", "--", "true"}, server).code == 78);
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

TEST_CASE("record engine with sessions: a lease is as long as the session that the store gave, not as was asked for")
{
  add_record_engine();
  const std::string server = "record-sessions:lease";
  const ChildEnd renewed =
      rlock_in_a_child({"run", "-k", "k", "--ttl", "8s", "--", "sh", "-c", "echo $RLOCK_LEASE_MS"}, server);
  CHECK(renewed.code == 0);
  CHECK(renewed.out == "6000\n");
  CHECK(renewed.err.empty());
  const Instant began = boot_clock.now();
  const ChildEnd fixed = rlock_in_a_child(
      {"run", "-k", "k", "--lease", "8s", "--", "sh", "-c", "echo $RLOCK_LEASE_MS; exec sleep 20"}, server);
  const auto took = boot_clock.now() - began;
  CHECK(fixed.code == 124);
  CHECK(fixed.out == "6000\n");
  CHECK(took < 6s);
  CHECK(took > 2s);
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
