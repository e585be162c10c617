// SPDX-License-Identifier: Apache-2.0
#include "process/detach.h"

#include "base/fd.h"
#include "process/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

namespace rlock {

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
