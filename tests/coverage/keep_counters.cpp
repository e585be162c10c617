// SPDX-License-Identifier: Apache-2.0
// Linked into the programs of the preset `coverage` only: gcc writes its counters when a process calls exit(3), and rlock ends by
// _exit(2), by execve(2) or by a signal to itself. What a process has counted when it is killed is lost.
#include <csignal>

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

void __gcov_dump();   // NOLINT(bugprone-reserved-identifier): libgcov's names
void __gcov_reset();  // NOLINT(bugprone-reserved-identifier)

// A process between clone(2) and execve(2) shares the counters with its parent, which goes on counting: hence the reset.
static void write_counters()
{
  __gcov_dump();
  __gcov_reset();
}

[[noreturn]] void _exit(int status)
{
  write_counters();
  for (;;) {
    ::syscall(SYS_exit_group, status);
  }
}

// The next one may be that of a library that a test has loaded into the process.
int execve(const char* path, char* const* argv, char* const* environment) noexcept
{
  write_counters();
  static const auto next = reinterpret_cast<decltype(&::execve)>(::dlsym(RTLD_NEXT, "execve"));
  return next(path, argv, environment);
}

int execv(const char* path, char* const* argv) noexcept { return ::execve(path, argv, environ); }

int raise(int signal) noexcept
{
  write_counters();
  return static_cast<int>(::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal));
}

}  // extern "C"
