// SPDX-License-Identifier: Apache-2.0
// How a job may end by itself, or not begin.
#include "support/job_runner.h"

#include <cerrno>
#include <fstream>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace rlock;
using namespace rlock::test;

JOB_DIR_CASE("job: the exit status is exact")
{
  struct Row {
    const char* text;
    const char* expect;
  };
  const Row rows[] = {
      {"exit 0", "exit 0"},
      {"exit 1", "exit 1"},
      {"exit 7", "exit 7"},
      {"exit 255", "exit 255"},
      {"kill -TERM $$", "died of TERM"},
      {"kill -KILL $$", "died of KILL"},
      {"ulimit -c 0; kill -SEGV $$", "died of SEGV"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(run(script(dir, row.text)) == row.expect);
  }
}

JOB_DIR_CASE("job: what cannot be executed says why")
{
  JobSpec spec = script(dir, "");
  spec.path = dir / "absent";
  CHECK(run(spec) == "errno " + std::to_string(ENOENT));
  std::ofstream(dir / "plain") << "echo\n";
  spec.path = dir / "plain";
  CHECK(run(spec) == "errno " + std::to_string(EACCES));
}

JOB_DIR_CASE("job: a script without #! is the shell's")
{
  const std::string path = dir / "bare";
  std::ofstream(path) << "exit $1\n";
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  JobSpec spec = script(dir, "");
  spec.path = path;
  spec.argv = {"bare", "9"};
  CHECK(run(spec) == "exit 9");
}

JOB_DIR_CASE("job: the gate stays shut on a lease that is over")
{
  JobSpec spec = script(dir, "touch $0/ran");
  CHECK(run(spec, stop_times(default_kill_after)) == "not started");
  CHECK(::access((dir / "ran").c_str(), F_OK) != 0);
}

JOB_DIR_CASE("job: an ignored SIGCHLD loses no status")
{
  const std::string result = in_runner([&] {
    ::signal(SIGCHLD, SIG_IGN);
    JobFixture fixture(Millis{60000});
    Job job = fixture.start(script(dir, "exit 3"));
    return follow(job);
  });
  CHECK(result == "exit 3");
}

JOB_DIR_CASE("job: nothing is left to be reaped")
{
  const std::string result = in_runner([&] {
    JobFixture fixture(Millis{60000});
    {
      Job job = fixture.start(script(dir, "sleep 0 & exit 3"));
      follow(job);
    }
    return std::string(::waitpid(-1, nullptr, WNOHANG) < 0 ? "childless" : "a zombie");
  });
  CHECK(result == "childless");
}

TEST_CASE("die_of: the status is the signal's")
{
  for (const int signal : {SIGTERM, SIGINT, SIGKILL, SIGSEGV, SIGQUIT}) {
    CAPTURE(signal);
    const pid_t pid = ::fork();
    if (pid == 0) {
      Signals signals;
      signals.block();
      die_of(signal);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    CHECK(status == signal);  // nothing else in it, so no core either
  }
}
