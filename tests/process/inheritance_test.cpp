// SPDX-License-Identifier: Apache-2.0
// The job inherits what rlock inherited, and nothing that belongs to rlock.
#include "support/integration.h"
#include "support/job_runner.h"

#include <fcntl.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

std::string line_with(const std::string& text, const std::string& word)
{
  const std::size_t at = text.find(word);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

}  // namespace

JOB_DIR_CASE("inheritance: the user's descriptors, and no other")
{
  const std::string result = in_runner([&] {
    for (int fd = 3; fd < 100; ++fd) {
      const int flags = ::fcntl(fd, F_GETFD);
      if (flags >= 0) {
        ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);  // whatever the test itself has inherited
      }
    }
    const Fd users(::open("/dev/null", O_RDONLY));
    ::dup2(users.get(), 9);
    ::fcntl(users.get(), F_SETFD, FD_CLOEXEC);
    JobFixture fixture(60s);
    Job job = fixture.start(script(dir,
                                   "exec > $0/fds; for f in $(seq 0 99); do "
                                   "[ -e /proc/$$/fd/$f ] && echo $f; done; :"));
    return follow(job);
  });
  CHECK(result == "exit 0");
  CHECK(text_of(dir / "fds") == "0\n1\n2\n9\n");
}

JOB_DIR_CASE("inheritance: the guardian keeps nothing of the user's open")
{
  const std::string result = in_runner([&] {
    int ends[2];
    if (::pipe(ends) != 0) {
      return std::string("no pipe");
    }
    JobFixture fixture(60s);
    Job job = fixture.start(script(dir, "exec " + std::to_string(ends[1]) + ">&- " + std::to_string(ends[0]) +
                                            "<&-; "
                                            "echo 1 > $0/ready; sleep 60"));
    ::close(ends[1]);
    wait_until([&] { return !text_of(dir / "ready").empty(); });
    char byte = 0;
    const bool eof = ::read(ends[0], &byte, 1) == 0;
    job.stop(5s);
    follow(job);
    return std::string(eof ? "eof" : "more");
  });
  CHECK(result == "eof");
}

JOB_DIR_CASE("inheritance: mask and dispositions")
{
  const std::string result = in_runner([&] {
    sigset_t odd;
    ::sigemptyset(&odd);
    ::sigaddset(&odd, SIGUSR2);
    ::pthread_sigmask(SIG_SETMASK, &odd, nullptr);
    ::signal(SIGHUP, SIG_IGN);
    ::signal(SIGCHLD, SIG_IGN);
    JobFixture fixture(60s);
    JobSpec spec;
    spec.path = "/bin/cp";
    spec.argv = {"cp", "/proc/self/status", dir / "status"};
    Job job = fixture.start(spec);
    return follow(job);
  });
  CHECK(result == "exit 0");
  const std::string status = text_of(dir / "status");
  CHECK(line_with(status, "SigBlk") == "SigBlk:\t0000000000000800");  // USR2
  CHECK(line_with(status, "SigIgn") == "SigIgn:\t0000000000010001");  // CHLD and HUP
}

TEST_CASE("signals: a signal that was ignored at the start is not caught")
{
  const std::string result = in_runner([] {
    ::signal(SIGHUP, SIG_IGN);
    Signals signals;
    signals.block();
    ::raise(SIGHUP);
    ::raise(SIGTERM);
    const auto first = signals.take();
    const auto second = signals.take();
    return signal_name(first ? first->number : 0) + (first->from_terminal ? " tty" : "") + (second ? " and more" : "");
  });
  CHECK(result == "TERM");
}
