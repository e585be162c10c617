// SPDX-License-Identifier: Apache-2.0
// stamp FILE [MS]: the job of the benchmarks. Appends the times of its begin and its end, in nanoseconds; between them
// it waits for MS milliseconds or does nothing.
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

namespace {

long long now_ns()
{
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * 1'000'000'000LL + ts.tv_nsec;
}

void wait_ms(long ms)
{
  const timespec time{.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000L};
  nanosleep(&time, nullptr);
}

}  // namespace

int main(int argc, char** argv)
{
  const long long begin = now_ns();
  if (argc > 2) {
    wait_ms(std::strtol(argv[2], nullptr, 10));
  }
  const int file = argc > 1 ? ::open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  char line[64];
  const int length = std::snprintf(line, sizeof line, "%lld %lld\n", begin, now_ns());
  return file >= 0 && ::write(file, line, static_cast<std::size_t>(length)) == length ? 0 : 1;
}
