// SPDX-License-Identifier: Apache-2.0
// Loaded into rlock with LD_PRELOAD: writes how many threads it has when it forks and when it ends, a line each, "fork 1",
// "exit 1", to the file RLOCK_TEST_THREADS. A thread counts from pthread_create(3) to the end of its pthread_join(3): /proc shows
// a thread for some time after it was joined.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::atomic<int> threads{1};

template <class Function>
Function* next(const char* name)
{
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void note(const char* what)
{
  const char* const file = std::getenv("RLOCK_TEST_THREADS");
  const int fd = file != nullptr ? ::open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (fd >= 0) {
    char line[16] = {};
    std::strcpy(line, what);
    const std::size_t size = std::strlen(line);
    line[size] = static_cast<char>('0' + threads % 10);
    line[size + 1] = '\n';
    [[maybe_unused]] const auto written = ::write(fd, line, size + 2);
    ::close(fd);
  }
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) noexcept
{
  ++threads;
  const int error = next<decltype(pthread_create)>("pthread_create")(thread, attributes, start, argument);
  threads -= error != 0 ? 1 : 0;
  return error;
}

int pthread_join(pthread_t thread, void** result)
{
  const int error = next<decltype(pthread_join)>("pthread_join")(thread, result);
  threads -= error == 0 ? 1 : 0;
  return error;
}

pid_t fork() noexcept
{
  note("fork ");
  const pid_t pid = next<decltype(fork)>("fork")();
  threads = pid == 0 ? 1 : threads.load();  // a child has only the thread that called fork(2)
  return pid;
}

void _exit(int code)
{
  note("exit ");
  for (;;) {
    ::syscall(SYS_exit_group, code);
  }
}

}  // extern "C"
