// SPDX-License-Identifier: Apache-2.0
#include "process/descriptors.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <numeric>
#include "base/fd.h"
#include "process/proc.h"

namespace rlock {
namespace {

std::vector<int> open_descriptors()
{
  std::vector<int> open = numbers_in("/proc/self/fd");
  if (open.empty()) {  // no /proc: every possible number
    constexpr long most = 65536;
    open.resize(static_cast<std::size_t>(std::clamp(::sysconf(_SC_OPEN_MAX), 0L, most)));
    std::iota(open.begin(), open.end(), 0);
  }
  return open;
}

}  // namespace

std::vector<int> close_own_descriptors(std::span<const int> keep)
{
  std::vector<int> inherited;
  for (const int fd : open_descriptors()) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0 || std::ranges::count(keep, fd) > 0) {
      continue;
    }
    if ((flags & FD_CLOEXEC) != 0) {
      ::close(fd);
    } else if (fd > STDERR_FILENO) {
      inherited.push_back(fd);
    }
  }
  return inherited;
}

std::vector<int> inherited_descriptors()
{
  std::vector<int> inherited = open_descriptors();
  std::erase_if(inherited, [](int fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    return fd <= STDERR_FILENO || flags < 0 || (flags & FD_CLOEXEC) != 0;
  });
  return inherited;
}

void detach()
{
  ::setsid();
  for (const int fd : inherited_descriptors()) {
    ::close(fd);
  }
  redirect_streams();
  [[maybe_unused]] const int moved = ::chdir("/");
}

void redirect_streams()
{
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (!null || ::dup2(null.get(), fd) != fd) {
      ::close(fd);
    }
  }
}

}  // namespace rlock
