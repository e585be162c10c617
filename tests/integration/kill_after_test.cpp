// SPDX-License-Identifier: Apache-2.0
// --kill-after that is given also counts from a signal that rlock passes on to its job, as that of timeout(1).
#include "support/guardian_of.h"
#include "support/job_runner.h"
#include "support/terminal.h"

#include "base/defaults.h"
#include "process/signals.h"
#include "support/integration.h"

#include <unistd.h>

using namespace rlock::test;

namespace {

constexpr Exit killed = died_of(SIGKILL);

// It and its worker ignore every signal that a user may send; DIR/main and DIR/worker have their numbers.
Words stubborn(const std::filesystem::path& dir)
{
  return {"sh", "-c",
          "trap '' TERM INT HUP QUIT; sh -c 'echo $$ >$0/worker; while :; do sleep 0.05; done' $0 & "
          "echo $$ >$0/main; wait",
          dir};
}

// One holder of one kind of lock.
class Holder {
 public:
  Holder(const RedisServer& server, Words words, std::string key, const Words& options)
      : m_server(server), m_key(std::move(key)), m_process(argv(server, std::move(words), options))
  {
    m_main = pid_from(m_dir / "main");
    m_worker = pid_from(m_dir / "worker");
    REQUIRE(is_alive(m_worker));
  }
  ~Holder()
  {
    ::kill(m_main, SIGKILL);
    ::kill(m_worker, SIGKILL);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  Process& process() { return m_process; }
  [[nodiscard]] bool job_is_dead() const { return !is_alive(m_main) && !is_alive(m_worker); }
  [[nodiscard]] bool has_lock() const { return as_int(m_server.command({"EXISTS", m_key})) == 1; }
  [[nodiscard]] const std::string& key() const { return m_key; }

  // The lock is held until the job is dead.
  void await_end()
  {
    const auto ended = [&] {
      const bool had_lock = has_lock();
      const bool is_dead = job_is_dead();
      REQUIRE((is_dead || had_lock));
      return is_dead;
    };
    wait_until(ended, "the job is dead", 30s);
    CHECK(m_process.wait(30s) == killed);
    CHECK_FALSE(has_lock());
  }

 private:
  Words argv(const RedisServer& server, Words words, const Words& options) const
  {
    return rlock_argv(with_job(joined(std::move(words), joined({"-S", server.url()}, options)), stubborn(m_dir)));
  }

  std::filesystem::path m_dir = make_temp_dir("job");
  const RedisServer& m_server;
  std::string m_key;
  Process m_process;
  pid_t m_main = 0;
  pid_t m_worker = 0;
};

std::string told(const std::string& how_long, const std::string& signal)
{
  return "rlock: the job was killed: it had not ended " + how_long + " after " + signal + " (--kill-after)\n";
}

}  // namespace

TEST_CASE("kill-after: a job that ignores the signal that rlock passes on is killed, and rlock dies of KILL")
{
  const RedisServer server;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    CAPTURE(signal);
    Holder holder(server, {"run", "-k", "stock"}, "stock", {"--kill-after", "700ms"});
    const Instant sent_at = BootClock().now();
    holder.process().signal(signal);
    holder.process().signal(signal);
    holder.await_end();
    CHECK(BootClock().now() - sent_at >= 700ms);
    CHECK(holder.process().err() == told("700ms", signal_name(signal)));
  }
}

TEST_CASE("kill-after: the same for each kind of lock")
{
  const RedisServer server;
  const std::vector<std::pair<Words, std::string>> kinds{
      {{"run", "-s", "-k", "read"}, "read"},
      {{"run", "-x", "-k", "write"}, "write"},
      {{"run", "--format", "string", "-k", "string"}, "string"},
      {{"run", "-k", "a", "-k", "b"}, "b"},
      {{"run", "-k", "shard", "--shards", "1"}, "shard:0"},
      {{"once", "--for", "1h", "-k", "once"}, "once"},
  };
  for (const auto& kind : kinds) {
    const auto& words = kind.first;
    const auto& key = kind.second;
    CAPTURE(key);
    Holder holder(server, words, key, {"--kill-after", "100ms"});
    holder.process().signal(SIGTERM);
    holder.await_end();
  }
  const Finished again = rlock_on(server, {"once", "-k", "once", "--for", "1h", "--", "echo", "ran"});
  CHECK(again.out == "ran\n");  // a killed job is no success
}

TEST_CASE("kill-after: 0 kills at once, without the signal")
{
  const RedisServer server;
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

TEST_CASE("kill-after: from the config file it counts as well, and without it there is no KILL")
{
  const RedisServer server;
  const auto dir = make_temp_dir("config");
  std::ofstream(dir / "rlock.toml") << "kill-after = \"100ms\"\n";
  const Words words = rlock_argv(with_job({"run", "-S", server.url(), "-k", "file"}, stubborn(dir)));
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

TEST_CASE("kill-after: a job that ends in time has its own exit code")
{
  const RedisServer server;
  const auto dir = make_temp_dir("job");
  const Words options{"once", "-S", server.url(), "-k", "stock", "--for", "1h", "--kill-after", "30s"};
  Process rlock = start_rlock(with_job(options, {"sh", "-c",
                                                 "trap 'echo >$0/usr' USR1; trap 'exit 0' TERM; echo $$ >$0/main; "
                                                 "while :; do sleep 0.01; done",
                                                 dir}));
  pid_from(dir / "main");
  rlock.signal(SIGTERM);
  CHECK(rlock.wait(30s) == success);
  CHECK_FALSE(has(rlock.err(), "rlock: "));
  const Finished again = run_rlock(with_job(options, {"echo", "ran"}));
  CHECK(again.out.empty());  // it succeeded
}

TEST_CASE("kill-after: USR1 and a terminal's Ctrl-C do not count, and a signal to rlock alone does")
{
  const RedisServer server;
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

TEST_CASE("kill-after: a stopped guardian does not keep the job alive")
{
  const RedisServer server;
  Holder holder(server, {"run", "-k", "stock"}, "stock", {"--kill-after", "100ms", "--ttl", "60s"});
  ::kill(guardian_of(holder.process().pid()), SIGSTOP);
  holder.process().signal(SIGTERM);
  holder.await_end();
}
