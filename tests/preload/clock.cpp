// SPDX-License-Identifier: Apache-2.0
// Loaded into a server with LD_PRELOAD: adds the nanoseconds in a file to its wall clock, so a test can step the clock
// of one server alone. With RLOCK_TEST_CLOCK_STANDS in its environment its wall clock shows what is in the file.
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

constexpr long second = 1'000'000'000;

const volatile std::int64_t* offset()
{
  static const volatile std::int64_t* const mapped = [] {
    const char* file = std::getenv("RLOCK_TEST_CLOCK");
    const int fd = file != nullptr ? ::open(file, O_RDONLY | O_CLOEXEC) : -1;
    void* page = fd < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? nullptr : static_cast<const volatile std::int64_t*>(page);
  }();
  return mapped;
}

timespec shown()
{
  static const bool stands = std::getenv("RLOCK_TEST_CLOCK_STANDS") != nullptr;
  timespec real{};
  if (!stands) {
    ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
  }
  const std::int64_t nanos = real.tv_sec * second + real.tv_nsec + (offset() != nullptr ? *offset() : 0);
  return {.tv_sec = nanos / second, .tv_nsec = nanos % second};
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* when) noexcept
{
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) {
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, when));
  }
  *when = shown();
  return 0;
}

int gettimeofday(timeval* __restrict when, void* __restrict) noexcept
{
  const timespec now = shown();
  *when = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* when) noexcept
{
  const time_t now = shown().tv_sec;
  if (when != nullptr) {
    *when = now;
  }
  return now;
}

}  // extern "C"
