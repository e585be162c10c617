// SPDX-License-Identifier: Apache-2.0
// --kill-after that is given also counts from a signal that rlock passes on to its job, as that of timeout(1).
#include "support/stubborn_holder.h"
#include "support/terminal.h"

#include "base/defaults.h"
#include "process/signals.h"
#include "support/integration.h"

#include <unistd.h>

using namespace rlock::test;

namespace {

constexpr Exit killed = died_of(SIGKILL);

using Holder = StubbornHolder;

// The lock is held until the job is dead.
void await_end(Holder& holder)
{
  const auto ended = [&] {
    const bool had_lock = holder.has_lock();
    const bool is_dead = holder.job_is_dead();
    REQUIRE((is_dead || had_lock));
    return is_dead;
  };
  wait_until(ended, "the job is dead", 30s);
  CHECK(holder.process().wait(30s) == killed);
  CHECK_FALSE(holder.has_lock());
}

std::string told(const std::string& how_long, const std::string& signal)
{
  return "rlock: the job was killed: it had not ended " + how_long + " after " + signal + " (--kill-after)\n";
}

}  // namespace

SERVER_CASE("kill-after: a job that ignores the signal that rlock passes on is killed, and rlock dies of KILL")
{
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    CAPTURE(signal);
    Holder holder(server, {{"run", "-k", "stock"}, "stock"}, {"--kill-after", "700ms"});
    holder.await_job();
    const Instant sent_at = BootClock().now();
    holder.process().signal(signal);
    holder.process().signal(signal);
    await_end(holder);
    CHECK(BootClock().now() - sent_at >= 700ms);
    CHECK(holder.process().err() == told("700ms", signal_name(signal)));
  }
}

SERVER_CASE("kill-after: the same for each kind of lock")
{
  const std::vector<Invocation> kinds{
      {{"run", "-s", "-k", "read"}, "read"},
      {{"run", "-x", "-k", "write"}, "write"},
      {{"run", "--format", "string", "-k", "string"}, "string"},
      {{"run", "-k", "a", "-k", "b"}, "b"},
      {{"run", "-k", "shard", "--shards", "1"}, "shard:0"},
      {{"once", "--for", "1h", "-k", "once"}, "once"},
  };
  for (const Invocation& kind : kinds) {
    CAPTURE(kind.key);
    Holder holder(server, kind, {"--kill-after", "100ms"});
    holder.await_job();
    holder.process().signal(SIGTERM);
    await_end(holder);
  }
  const Finished again = rlock_on(server, {"once", "-k", "once", "--for", "1h", "--", "echo", "ran"});
  CHECK(again.out == "ran\n");  // a killed job is no success
}

SERVER_CASE("kill-after: 0 kills at once, without the signal")
{
  const auto dir = make_temp_dir("job");
  Process rlock =
      start_on(server, {"run", "-k", "stock", "--kill-after", "0", "--", "sh", "-c",
                        "trap 'echo TERM >$0/heard' TERM; echo $$ >$0/main; while :; do sleep 0.01; done", dir});
  const pid_t job = pid_from(dir / "main");
  rlock.signal(SIGTERM);
  CHECK(rlock.wait(30s) == killed);
  CHECK_FALSE(is_alive(job));
  CHECK(text_of(dir / "heard").empty());
}

SERVER_CASE("kill-after: from the config file it counts as well, and without it there is no KILL")
{
  const auto dir = make_temp_dir("config");
  std::ofstream(dir / "rlock.toml") << "kill-after = \"100ms\"\n";
  const Words words = rlock_argv(with_job({"run", "-S", server.url(), "-k", "file"}, stubborn_job(dir)));
  Process by_file(words, {.env = {{"RLOCK_CONFIG", (dir / "rlock.toml").string()}}});
  pid_from(dir / "main");
  by_file.signal(SIGTERM);
  CHECK(by_file.wait(30s) == killed);

  const auto without = make_temp_dir("job");
  Process patient =
      start_on(server, {"run", "-k", "none", "--", "sh", "-c",
                        "trap 'echo TERM >$0/heard' TERM; echo $$ >$0/main; until [ -e $0/go ]; do sleep 0.05; done; "
                        "exit 5",
                        without});
  pid_from(without / "main");
  patient.signal(SIGTERM);
  wait_until([&] { return !text_of(without / "heard").empty(); }, "the job has the signal");
  std::this_thread::sleep_for(default_kill_after + 1s);
  CHECK(patient.running());
  std::ofstream(without / "go") << "\n";
  CHECK(patient.wait(30s) == exited(5));
}

SERVER_CASE("kill-after: a job that ends in time has its own exit code")
{
  const auto dir = make_temp_dir("job");
  const Words options{"once", "-S", server.url(), "-k", "stock", "--for", "1h", "--kill-after", "30s"};
  Process rlock = start_rlock(with_job(options, {"sh", "-c",
                                                 "trap 'echo >$0/usr' USR1; trap 'exit 0' TERM; echo $$ >$0/main; "
                                                 "while :; do sleep 0.01; done",
                                                 dir}));
  pid_from(dir / "main");
  rlock.signal(SIGTERM);
  expect_end(rlock, success, {err_lacks("rlock: ")}, 30s);
  const Finished again = run_rlock(with_job(options, {"echo", "ran"}));
  CHECK(again.out.empty());  // it succeeded
}

SERVER_CASE("kill-after: USR1 and a terminal's Ctrl-C do not count, and a signal to rlock alone does")
{
  const auto dir = make_temp_dir("job");
  TestTerminal terminal;
  Process rlock = start_on(server,
                           {"run", "-k", "stock", "--kill-after", "200ms", "--", "sh", "-c",
                            "trap 'echo >$0/usr1' USR1; trap 'echo >$0/int' INT; echo $$ >$0/main; "
                            "while :; do sleep 0.05; done",
                            dir},
                           {.terminal = terminal.process_side()});
  const pid_t job = pid_from(dir / "main");
  terminal.type("\x03");
  wait_until([&] { return std::filesystem::exists(dir / "int"); }, "Ctrl-C has reached the job");
  rlock.signal(SIGUSR1);
  wait_until([&] { return std::filesystem::exists(dir / "usr1"); }, "USR1 has reached the job");
  std::this_thread::sleep_for(1s);
  CHECK(rlock.running());
  CHECK(is_alive(job));
  rlock.signal(SIGINT);
  CHECK(rlock.wait(30s) == killed);
  CHECK_FALSE(is_alive(job));
}

SERVER_CASE("kill-after: a stopped guardian does not keep the job alive")
{
  Holder holder(server, {{"run", "-k", "stock"}, "stock"}, {"--kill-after", "100ms", "--ttl", "60s"});
  holder.await_job();
  ::kill(holder.guardian(), SIGSTOP);
  holder.process().signal(SIGTERM);
  await_end(holder);
}
