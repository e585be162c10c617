// SPDX-License-Identifier: Apache-2.0
#include "process/shell.h"

#include "process/descriptors.h"
#include "process/launch.h"
#include "process/signals.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis time_after_signal{1000};

// Runs in the child.
[[noreturn]] void become_shell(const ShellCommand& command, const std::vector<char*>& environment,
                               const std::vector<int>& descriptors, const Signals& inherited)
{
  ::setpgid(0, 0);
  for (const int fd : descriptors) {
    ::close(fd);
  }
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0) {
    ::close(STDIN_FILENO);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  inherited.restore();
  std::array<char*, 4> argv{const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(command.line.c_str()),
                            nullptr};
  ::execve("/bin/sh", argv.data(), environment.data());
  ::_exit(127);
}

// Waits until the process can be reaped, kills its group at the end of the time. True: it was killed.
bool await(pid_t shell, const PidFd& process, Instant until, const Clock& clock, Signals* heeded)
{
  while (!process.has_ended() && clock.now() < until) {
    std::array<pollfd, 2> waits{pollfd{.fd = process.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = heeded != nullptr ? heeded->fd() : -1, .events = POLLIN, .revents = 0}};
    ::poll(waits.data(), waits.size(), poll_timeout(clock.now(), until));
    while (const auto signal = heeded != nullptr ? heeded->take() : std::nullopt) {
      ::kill(-shell, signal->number);
      until = std::min(until, clock.now() + time_after_signal);
    }
  }
  const bool is_late = !process.has_ended();
  if (is_late) {
    ::kill(-shell, SIGKILL);
  }
  return is_late;
}

}  // namespace

std::string describe(const ShellEnd& end)
{
  switch (end.how) {
    case ShellEnd::How::exited: return "ended with exit code " + std::to_string(end.number);
    case ShellEnd::How::killed: return "was killed by signal " + signal_name(end.number);
    case ShellEnd::How::time_over: return "took too long and was killed";
    case ShellEnd::How::not_started: break;
  }
  return "could not be started: " + std::generic_category().message(end.number);
}

ShellEnd run_in_shell(const ShellCommand& command, const Clock& clock, const Signals& inherited, Signals* heeded)
{
  const Instant until = clock.now() + command.time_limit;
  const std::vector<char*> environment = exec_pointers(command.environment);
  const std::vector<int> descriptors = inherited_descriptors();
  const pid_t shell = ::fork();
  if (shell < 0) {
    return {ShellEnd::How::not_started, errno};
  }
  if (shell == 0) {
    become_shell(command, environment, descriptors, inherited);
  }
  ::setpgid(shell, shell);  // as the child does, whichever is first
  const auto process = PidFd::open(shell);
  const bool has_ended = !process && process.error().code == ErrorCode::usage;  // already
  const bool is_blind = !process && !has_ended;
  if (is_blind) {
    ::kill(-shell, SIGKILL);
  }
  const bool was_late = process && await(shell, *process, until, clock, heeded);
  int status = 0;
  while (::waitpid(shell, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_blind) {
    return {ShellEnd::How::not_started, EMFILE};
  }
  if (was_late) {
    return {ShellEnd::How::time_over, 0};
  }
  return WIFSIGNALED(status) ? ShellEnd{ShellEnd::How::killed, WTERMSIG(status)}
                             : ShellEnd{ShellEnd::How::exited, WEXITSTATUS(status)};
}

}  // namespace rlock
