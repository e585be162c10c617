// SPDX-License-Identifier: Apache-2.0
// A runner in the foreground of a pseudo-terminal whose keys the test presses.
#include "support/integration.h"
#include "support/job_runner.h"

#include <cstdlib>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

class Keyboard {
 public:
  Keyboard() : m_master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC))
  {
    REQUIRE(::grantpt(m_master.get()) == 0);
    REQUIRE(::unlockpt(m_master.get()) == 0);
  }

  // In a new process: starts a session with this terminal, as a login shell does.
  void sit_down() const
  {
    ::setsid();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): this process has one thread
    const int terminal = ::open(::ptsname(m_master.get()), O_RDWR);
    ::ioctl(terminal, TIOCSCTTY, 0);
    ::dup2(terminal, STDIN_FILENO);
    ::close(terminal);
  }

  void press(char key) const { CHECK(::write(m_master.get(), &key, 1) == 1); }

 private:
  Fd m_master;
};

constexpr char ctrl_c = 3;
constexpr char ctrl_z = 26;

// Runs it in the group that has the terminal, as a child of the session's leader: TSTP does not stop the orphaned group of a leader.
// It ignores TTOU.
std::string in_foreground(const Keyboard& keyboard, const std::function<std::string()>& body)
{
  return in_runner([&] {
    keyboard.sit_down();
    return in_runner([&] {
      ::setpgid(0, 0);
      ::signal(SIGTTOU, SIG_IGN);
      ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
      return body();
    });
  });
}

}  // namespace

JOB_DIR_CASE("terminal: the job shares the foreground, Ctrl-C reaches it directly")
{
  const Keyboard keyboard;
  const std::string result = in_runner([&] {
    keyboard.sit_down();
    JobFixture fixture(60s);
    Job job = fixture.start(script(dir, "echo $$ > $0/ready; exec sleep 60"));
    const pid_t pid = pid_from(dir / "ready");
    std::string events = job.shares_group() ? "shared; " : "not shared; ";
    events += ::getpgid(pid) == ::getpgrp() ? "one group; " : "its own group; ";
    keyboard.press(ctrl_c);
    events += follow(job);
    const auto taken = fixture.signals.take();
    return events + (taken && taken->from_terminal ? "; so did we" : "");
  });
  CHECK(result == "shared; one group; died of INT; so did we");
}

JOB_DIR_CASE("terminal: Ctrl-Z is reported, and stops the runner only if it mirrors the stop")
{
  const Keyboard keyboard;
  const std::string result = in_foreground(keyboard, [&] {
    ::signal(SIGTTOU, SIG_DFL);
    JobFixture fixture(60s);
    Job job = fixture.start(script(dir, "echo $$ > $0/ready; exec sleep 60"));
    const pid_t pid = pid_from(dir / "ready");
    keyboard.press(ctrl_z);
    const std::string events = await(job) + "; ";
    ::kill(pid, SIGCONT);
    job.forward(SIGTERM);
    return events + follow(job);
  });
  CHECK(result == "paused by TSTP; died of TERM");
}

JOB_DIR_CASE("terminal: taken back from a shell that was killed, with its modes")
{
  const Keyboard keyboard;
  const std::string result = in_foreground(keyboard, [&] {
    JobFixture fixture(60s);
    // With set -m the command has a group of its own; the terminal is given to it here.
    Job job = fixture.start(script(dir,
                                   "stty -echo; set -m; "
                                   "sh -c 'trap \"\" TERM; echo $$ > $0/ready; sleep 60' $0"));
    const pid_t pid = pid_from(dir / "ready");
    ::tcsetpgrp(STDIN_FILENO, ::getpgid(pid));
    const bool lent = ::tcgetpgrp(STDIN_FILENO) != ::getpgrp();
    job.stop(50ms);
    const std::string events = follow(job);
    termios modes{};
    ::tcgetattr(STDIN_FILENO, &modes);
    return events + (lent ? "; lent" : "") + (::tcgetpgrp(STDIN_FILENO) == ::getpgrp() ? "; ours" : "; lost") +
           ((modes.c_lflag & ECHO) != 0 ? "; echo" : "; no echo");
  });
  CHECK(result == "died of TERM by order killed; lent; ours; echo");
}

// In a group that it does not lead setsid(1) need not fork: the job itself starts another session.
TEST_CASE("terminal: a job that makes a session of its own is stopped all the same")
{
  struct Row {
    const char* text;
    std::function<void(Job&)> end;
    const char* expect;
  };
  const Row rows[] = {
      {"exec sleep 60", [](Job& job) { job.forward(SIGTERM); }, "died of TERM"},
      {"exec sleep 60", [](Job& job) { job.stop(5s); }, "died of TERM by order"},
      {"trap \"\" TERM; sleep 60 & echo $! > $0/child; wait", [](Job& job) { job.stop(50ms); },
       "died of KILL by order killed"},
  };
  for (const Row& row : rows) {
    const auto dir = make_temp_dir("job");
    const Keyboard keyboard;
    const std::string result = in_runner([&] {
      keyboard.sit_down();
      JobFixture fixture(60s);
      const std::string text = std::string("echo $$ > $0/ready; ") + row.text;
      Job job = fixture.start(script(dir, "exec setsid sh -c '" + text + "' $0"));
      const pid_t pid = pid_from(dir / "ready");
      const bool moved = ::getsid(pid) == pid;
      row.end(job);
      return (moved ? "" : "our session; ") + follow(job);
    });
    CHECK(result == row.expect);
    CHECK_FALSE(is_alive(std::atoi(text_of(dir / "child").c_str())));
  }
}
