// SPDX-License-Identifier: Apache-2.0
#include "process/inherited_pipe.h"

#include "process/job.h"
#include "process/pidfd.h"
#include "process/proc.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rlock {
namespace {

// Greater than the numbers that scripts use for their own files, because their `exec 3>file` would close the pipe.
constexpr int lowest_number = 20;

bool is_same(const struct stat& one, const struct stat& other)
{
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool has_open(pid_t pid, const struct stat& pipe)
{
  const std::string directory = "/proc/" + std::to_string(pid) + "/fd";
  for (const int fd : numbers_in(directory.c_str())) {
    struct stat found {};
    if (::stat((directory + "/" + std::to_string(fd)).c_str(), &found) == 0 && is_same(found, pipe)) {
      return true;
    }
  }
  return false;
}

// Opens the pidfd before it looks at the process, so that the number cannot come to mean another process meanwhile.
bool kill_if_holder(pid_t pid, const struct stat& pipe, const std::array<pid_t, 2>& sessions)
{
  const auto process = PidFd::open(pid);
  if (!process || std::ranges::count(sessions, ::getsid(pid)) == 0 || !has_open(pid, pipe)) {
    return false;
  }
  process->signal(SIGKILL);
  return true;
}

}  // namespace

Fd InheritedPipe::open()
{
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {};
  }
  m_pipe = Fd(ends[0]);
  m_session = ::getsid(0);
  const Fd low(ends[1]);
  Fd high(::fcntl(low.get(), F_DUPFD, lowest_number));
  // The limit on descriptors may be lower than lowest_number.
  return high ? std::move(high) : Fd(::fcntl(low.get(), F_DUPFD, STDERR_FILENO + 1));
}

bool InheritedPipe::is_held() const
{
  pollfd pipe{.fd = m_pipe.get(), .events = 0, .revents = 0};
  return m_pipe && ::poll(&pipe, 1, 0) == 0;
}

void InheritedPipe::kill_all(pid_t main) const
{
  struct stat pipe {};
  if (::fstat(m_pipe.get(), &pipe) != 0) {
    return;
  }
  const BootClock clock;
  const Instant give_up = clock.now() + kill_patience;
  bool found = true;
  while (found && is_held() && clock.now() < give_up) {
    found = false;
    for (const pid_t pid : numbers_in("/proc")) {
      found = (pid != ::getpid() && kill_if_holder(pid, pipe, {m_session, main})) || found;
    }
    const timespec a_little{0, 2'000'000};
    ::nanosleep(&a_little, nullptr);
  }
}

}  // namespace rlock
