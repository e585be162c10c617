// SPDX-License-Identifier: Apache-2.0
// Terminals that hang up, jobs that a shell moves between background and foreground, and an empty environment.
#include "support/integration.h"
#include "support/terminal.h"

using namespace rlock::test;

namespace {

std::vector<std::string> run_on(const RedisServer& server, const std::vector<std::string>& job)
{
  return rlock_argv(with_job({"run", "-S", server.url(), "-k", "k"}, job));
}

std::string quoted(const std::vector<std::string>& words)
{
  std::string text;
  for (const std::string& word : words) {
    text += "'";
    for (const char letter : word) {
      text += letter == '\'' ? "'\\''" : std::string(1, letter);
    }
    text += "' ";
  }
  return text;
}

// Writes its pid into DIR/job, and a line into DIR/hups at each HUP, which ends it.
std::vector<std::string> job_in(const std::filesystem::path& dir)
{
  return {"sh", "-c",
          "cd " + dir.string() +
              "; trap 'echo HUP >> hups; over=1' HUP; echo $$ > new; mv new job; "
              "while [ -z \"$over\" ]; do sleep 0.05; done; sleep 0.3"};
}

pid_t job_of(const std::filesystem::path& dir)
{
  wait_until([&] { return std::filesystem::exists(dir / "job"); }, "the job runs");
  return std::stoi(text_of(dir / "job"));
}

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0; }

// An interactive shell on a terminal.
class Shell {
 public:
  Shell()
      : m_shell({"bash", "--norc", "--noprofile", "-i"},
                {.env = {{"HISTFILE", std::nullopt}, {"PS1", "ready$ "}}, .terminal = m_terminal.process_side()})
  {
    wait_until([&] { return sees("ready$ "); }, "the shell is ready");
  }

  void type(const std::string& keys) { m_terminal.type(keys); }
  void await(const std::string& text)
  {
    wait_until([&] { return sees(text); }, "the terminal shows " + text, 20s);
  }
  bool sees(const std::string& text) { return has(m_terminal.seen(), text); }

 private:
  TestTerminal m_terminal;
  Process m_shell;
};

}  // namespace

SERVER_CASE("session: a hangup of the terminal of a session that rlock leads ends the job and releases the lock")
{
  const auto dir = make_temp_dir("job");
  TestTerminal terminal;
  Process run(run_on(server, job_in(dir)), {.terminal = terminal.process_side()});
  const pid_t job = job_of(dir);
  terminal.hang_up();
  CHECK(run.wait(20s) == success);  // as its job, which caught the signal
  CHECK(text_of(dir / "hups") == "HUP\n");
  CHECK(is_gone(job));
  CHECK_FALSE(is_held(server));
}

TEST_CASE("session: a hangup ends rlock as it ends a job that does not catch it")
{
  for (const bool as_flock : {false, true}) {
    CAPTURE(as_flock);
    const RedisServer server;
    const auto dir = make_temp_dir("job");
    TestTerminal terminal;
    const std::string job = "cd " + dir.string() + "; echo $$ > new; mv new job; exec sleep 100";
    Process run(
        as_flock ? rlock_argv({"flock", "-S", server.url(), "k", "-c", job}) : run_on(server, {"sh", "-c", job}),
        {.terminal = terminal.process_side()});
    job_of(dir);
    terminal.hang_up();
    CHECK(run.wait(20s) == (as_flock ? exited(128 + SIGHUP) : died_of(SIGHUP)));
    CHECK_FALSE(is_held(server));
  }
}

SERVER_CASE("session: a hangup ends a waiter that leads the session")
{
  server.command({"HSET", "k", "somebody:1", "1"});
  server.command({"PEXPIRE", "k", "60000"});
  TestTerminal terminal;
  Process run(run_on(server, {"true"}), {.terminal = terminal.process_side()});
  wait_until([&] { return has(terminal.seen(), "waiting for k"); }, "it waits");
  terminal.hang_up();
  CHECK(run.wait(20s) == died_of(SIGHUP));
}

SERVER_CASE("session: a hangup reaches the job of a script that leads the session, once")
{
  const auto dir = make_temp_dir("job");
  TestTerminal terminal;
  Process script({"sh", "-c", quoted(run_on(server, job_in(dir))) + "; true"}, {.terminal = terminal.process_side()});
  const pid_t job = job_of(dir);
  terminal.hang_up();
  CHECK(script.wait(20s) == died_of(SIGHUP));
  wait_until([&] { return is_gone(job); }, "the job has ended", 20s);
  wait_until([&] { return !is_held(server); }, "the lock is released", 20s);
  CHECK(text_of(dir / "hups") == "HUP\n");
}

SERVER_CASE("session: fg gives the terminal to a job that was started in the background")
{
  Shell shell;
  shell.type(quoted(run_on(server, {"sed", "-u", "s/^/heard:/"})) + "&\r");
  wait_until([&] { return is_held(server); }, "the lock is taken");
  const auto is_stopped = [&] {
    shell.type("\r");  // the shell reports it before the next prompt
    return shell.sees("Stopped");
  };
  wait_until(is_stopped, "the job is stopped, because it wants to read", 20s);
  shell.type("fg; echo status=$?.\r");
  const auto is_heard = [&] {
    shell.type("words\r");  // the shell reads what is typed while it has the terminal
    return shell.sees("heard:words");
  };
  wait_until(is_heard, "the job reads from the terminal", 20s);
  shell.type("\x04");
  shell.await("status=0.");
  CHECK_FALSE(is_held(server));
}

SERVER_CASE("session: after fg the keys reach the job")
{
  Shell shell;
  shell.type(quoted(run_on(
                 server, {"sh", "-c", "trap 'echo caught; exit 5' INT; echo be''gun; while :; do sleep 0.05; done"})) +
             "&\r");
  shell.await("begun");
  shell.type("fg; echo status=$?.\r");
  shell.await("rlock' 'run'");
  std::this_thread::sleep_for(300ms);  // until the shell has given the terminal away, which nothing shows
  shell.type("\x03");
  shell.await("caught");
  shell.await("status=5.");
  CHECK_FALSE(is_held(server));
}

SERVER_CASE("session: a job in the background that has no terminal for its input keeps a group of its own")
{
  Shell shell;
  shell.type(quoted(run_on(server, {"sh", "-c", "test $(ps -o pgid= $$) = $$ && echo its'' own"})) + "</dev/null &\r");
  shell.await("its own");
}

SERVER_CASE("session: without PATH a command is found where execvp finds it")
{
  std::vector<std::string> words{"env", "-i"};
  const auto run = run_on(server, {"env"});
  words.insert(words.end(), run.begin(), run.end());
  Process process(words);
  expect_end(process, success, {out_has("RLOCK_KEY=k\n"), out_lacks("PATH="), err_is("")});
}
