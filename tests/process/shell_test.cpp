// SPDX-License-Identifier: Apache-2.0
// A command line for /bin/sh, for a bounded time.
#include "process/shell.h"
#include "support/integration.h"

#include <fcntl.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

struct Shell {
  std::string run(const std::string& line, Millis time_limit = 30s)
  {
    const std::string path = ::getenv("PATH");
    return describe(run_in_shell(
        {.line = line, .environment = {"PATH=" + path, "OUT=" + out.string(), "WORD=a b"}, .time_limit = time_limit},
        clock, signals, nullptr));
  }
  [[nodiscard]] std::string told() const { return text_of(out); }

  const std::filesystem::path out = make_temp_dir("shell") / "out";
  BootClock clock;
  Signals signals;
};

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0; }

}  // namespace

TEST_CASE("shell: how a command ends")
{
  Shell shell;
  CHECK(shell.run("true") == "ended with exit code 0");
  for (int i = 0; i < 100; ++i) {  // some of these are over before they are looked at
    REQUIRE(shell.run("exit 3") == "ended with exit code 3");
  }
  CHECK(shell.run("exit 3") == "ended with exit code 3");
  CHECK(shell.run("kill -9 $$") == "was killed by signal KILL");
  CHECK(shell.run("no-such-program-x 2>/dev/null") == "ended with exit code 127");
}

TEST_CASE("shell: it has its environment, nothing to read, and no descriptor of this process")
{
  Shell shell;
  const int inherited = ::open("/dev/null", O_RDONLY);  // without FD_CLOEXEC, as a caller of rlock passes some in
  REQUIRE(inherited >= 0);
  CHECK(shell.run("{ echo \"$WORD\"; cat; ls -1 /proc/self/fd; } >\"$OUT\"") == "ended with exit code 0");
  CHECK(shell.told() == "a b\n0\n1\n2\n3\n");  // 3 is the directory that ls reads
  ::close(inherited);
}

TEST_CASE("shell: at the end of its time it is killed with all that it started")
{
  Shell shell;
  CHECK(shell.run("trap '' TERM; sleep 60 & echo $! >\"$OUT\"; wait", 300ms) == "took too long and was killed");
  const pid_t child = std::stoi(shell.told());
  wait_until([&] { return !is_alive(child); }, "its child is killed, too", 30s);
}

TEST_CASE("shell: what it leaves behind when it ends in time is not waited for")
{
  Shell shell;
  const Instant begin = shell.clock.now();
  CHECK(shell.run("sleep 60 & echo $! >\"$OUT\"") == "ended with exit code 0");
  CHECK(shell.clock.now() - begin < 30s);
  const pid_t child = std::stoi(shell.told());
  CHECK(is_alive(child));
  ::kill(child, SIGKILL);
}
