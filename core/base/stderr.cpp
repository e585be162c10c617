// SPDX-License-Identifier: Apache-2.0
#include "base/stderr.h"

#include "base/fd.h"

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rlock {
namespace {

bool is_writable()
{
  pollfd output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1;
}

// A pipe or terminal that is opened again has an open file description, and so an O_NONBLOCK, of its own. Where the
// system refuses that (another user's terminal, no /proc, no free descriptor), poll(2) is used: then another writer may
// fill the pipe between poll(2) and write(2).
ssize_t write_to_pipe_or_device(std::string_view text)
{
  const Fd own(::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (own) {
    return ::write(own.get(), text.data(), text.size());
  }
  if (!is_writable()) {
    errno = EAGAIN;
    return -1;
  }
  return ::write(STDERR_FILENO, text.data(), text.size());
}

ssize_t write_some(std::string_view text)
{
  struct stat info {};
  if (::fstat(STDERR_FILENO, &info) != 0) {
    return -1;
  }
  if (S_ISSOCK(info.st_mode)) {
    return ::send(STDERR_FILENO, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) {
    return write_to_pipe_or_device(text);
  }
  return ::write(STDERR_FILENO, text.data(), text.size());  // a file: the shared description has the offset
}

}  // namespace

std::size_t write_stderr_at_once(std::string_view text)
{
  ssize_t written = 0;
  do {
    written = write_some(text);
  } while (written < 0 && errno == EINTR);
  if (written >= 0) {
    return static_cast<std::size_t>(written);
  }
  return errno == EAGAIN ? 0 : text.size();
}

}  // namespace rlock
