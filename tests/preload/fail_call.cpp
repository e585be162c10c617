// SPDX-License-Identifier: Apache-2.0
// Loaded into rlock with LD_PRELOAD: one call of one function fails, or all from that call on, in the runner or in the
// guardian. RLOCK_TEST_FAIL has the words FUNCTION, NUMBER (from 1), ERRNO (a number), `once` or `good`, and `runner` or
// `guardian`. The first failure makes the file RLOCK_TEST_FAIL_FILE. The job and other programs run without this library.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Failure {
  char function[32];
  int number;
  int error;
  char how_long[8];
  char where[16];
  char file[256];
};
Failure failure;
bool is_active = false;
bool is_guardian = false;
std::atomic<int> calls = 0;  // of the function, in this process

__attribute__((constructor)) void read_environment()
{
  const char* const text = std::getenv("RLOCK_TEST_FAIL");
  const char* const file = std::getenv("RLOCK_TEST_FAIL_FILE");
  if (text == nullptr || file == nullptr || std::strcmp(program_invocation_short_name, "rlock") != 0) {
    return;
  }
  std::snprintf(failure.file, sizeof failure.file, "%s", file);
  is_active = std::sscanf(text, "%31s %d %d %7s %15s", failure.function, &failure.number, &failure.error,
                          failure.how_long, failure.where) == 5;
  ::unsetenv("LD_PRELOAD");
}

void note_failure()
{
  const long fd = ::syscall(SYS_openat, AT_FDCWD, failure.file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ::syscall(SYS_close, fd);
}

bool fails(const char* function)
{
  const bool is_here = std::strcmp(failure.where, is_guardian ? "guardian" : "runner") == 0;
  if (!is_active || !is_here || std::strcmp(function, failure.function) != 0) {
    return false;
  }
  const int number = ++calls;
  if (number != failure.number && (number < failure.number || std::strcmp(failure.how_long, "good") != 0)) {
    return false;
  }
  if (number == failure.number) {
    note_failure();
  }
  errno = failure.error;
  return true;
}

// Reading an eventfd, a signalfd or a timerfd, and writing to an eventfd, does not fail.
bool is_event(int fd)
{
  struct stat info {};
  return ::fstat(fd, &info) == 0 && (info.st_mode & S_IFMT) == 0;
}

template <typename Function>
Function real(const char* name)
{
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// The functions have names of their own in C++, because the headers declare the others, some with other attributes.
#define FAILING_IF(condition, result, name, failed, parameters, arguments)                       \
  extern "C" __attribute__((visibility("default"))) result failing_##name parameters asm(#name); \
  extern "C" result failing_##name parameters                                                    \
  {                                                                                              \
    return (condition) && fails(#name) ? failed : real<result(*) parameters>(#name) arguments;   \
  }
#define FAILING(result, name, failed, parameters, arguments) \
  FAILING_IF(true, result, name, failed, parameters, arguments)

FAILING(int, connect, -1, (int fd, const sockaddr* to, socklen_t size), (fd, to, size))
FAILING(int, clone, -1, (int (*run)(void*), void* stack, int flags, void* with), (run, stack, flags, with))
FAILING(int, dup2, -1, (int from, int to), (from, to))
FAILING(int, epoll_create1, -1, (int flags), (flags))
FAILING(int, epoll_ctl, -1, (int set, int what, int fd, epoll_event* event), (set, what, fd, event))
FAILING(int, eventfd, -1, (unsigned first, int flags), (first, flags))
FAILING(int, execve, -1, (const char* path, char* const* argv, char* const* envp), (path, argv, envp))
FAILING(int, fcntl64, -1, (int fd, int what, long with), (fd, what, with))
// ERRNO is the result, as EAI_AGAIN. Only lookups of names count.
FAILING_IF((hints->ai_flags & AI_NUMERICHOST) == 0, int, getaddrinfo, errno,
           (const char* host, const char* service, const addrinfo* hints, addrinfo** found),
           (host, service, hints, found))
FAILING(ssize_t, getrandom, -1, (void* to, size_t size, unsigned flags), (to, size, flags))
FAILING(void*, mmap64, MAP_FAILED, (void* at, size_t size, int access, int flags, int fd, off_t from),
        (at, size, access, flags, fd, from))
FAILING(int, nanosleep, -1, (const timespec* time, timespec* left), (time, left))
FAILING(int, open64, -1, (const char* path, int flags, mode_t kind), (path, flags, kind))
FAILING(DIR*, opendir, nullptr, (const char* path), (path))
FAILING(int, pipe2, -1, (int* ends, int flags), (ends, flags))
FAILING(int, poll, -1, (pollfd * waits, nfds_t count, int timeout), (waits, count, timeout))
FAILING(int, ppoll, -1, (pollfd * waits, nfds_t count, const timespec* timeout, const sigset_t* mask),
        (waits, count, timeout, mask))
FAILING(int, prctl, -1, (int what, unsigned long a, unsigned long b, unsigned long c, unsigned long d),
        (what, a, b, c, d))
FAILING(int, pthread_create, errno,
        (pthread_t * thread, const pthread_attr_t* attributes, void* (*run)(void*), void* with),
        (thread, attributes, run, with))
FAILING_IF(!is_event(fd), ssize_t, read, -1, (int fd, void* to, size_t size), (fd, to, size))
FAILING(ssize_t, recv, -1, (int fd, void* to, size_t size, int flags), (fd, to, size, flags))
FAILING(ssize_t, send, -1, (int fd, const void* from, size_t size, int flags), (fd, from, size, flags))
FAILING(int, setpgid, -1, (pid_t pid, pid_t group), (pid, group))
FAILING(int, signalfd, -1, (int fd, const sigset_t* mask, int flags), (fd, mask, flags))
FAILING(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
FAILING(int, socketpair, -1, (int domain, int type, int protocol, int* ends), (domain, type, protocol, ends))
FAILING(int, timer_create, -1, (clockid_t clock, sigevent* event, timer_t* timer), (clock, event, timer))
FAILING(int, timer_settime, -1, (timer_t timer, int flags, const itimerspec* time, itimerspec* old),
        (timer, flags, time, old))
FAILING(int, timerfd_create, -1, (clockid_t clock, int flags), (clock, flags))
FAILING(int, timerfd_settime, -1, (int fd, int flags, const itimerspec* time, itimerspec* old), (fd, flags, time, old))
FAILING(int, waitid, -1, (idtype_t type, id_t id, siginfo_t* info, int options), (type, id, info, options))
FAILING(pid_t, waitpid, -1, (pid_t pid, int* status, int options), (pid, status, options))
FAILING_IF(!is_event(fd), ssize_t, write, -1, (int fd, const void* from, size_t size), (fd, from, size))

extern "C" __attribute__((visibility("default"))) pid_t failing_fork() asm("fork");
extern "C" pid_t failing_fork()
{
  if (fails("fork")) {
    return -1;
  }
  const pid_t child = real<pid_t (*)()>("fork")();
  if (child == 0 && !is_guardian) {
    is_guardian = true;
    calls = 0;
  }
  return child;
}
