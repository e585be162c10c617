// SPDX-License-Identifier: Apache-2.0
#include "cli/output/output.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <poll.h>
#include <stdio_ext.h>
#include <unistd.h>

namespace rlock::cli {

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Result<Done> finish_output()
{
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) {
    return Done{};
  }
  const std::string why = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  return Error{ErrorCode::os, "cannot write to standard output" + why};
}

bool drop_unread_output()
{
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  if (::poll(&out, 1, 0) != 1 || (out.revents & POLLERR) == 0) {
    return false;
  }
  ::__fpurge(stdout);
  std::clearerr(stdout);
  return true;
}

}  // namespace rlock::cli
