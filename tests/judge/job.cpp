// SPDX-License-Identifier: Apache-2.0
// rlock_judge_job FILE MS [OPTION...]: the job of the judge. It runs for MS milliseconds and appends what it is to FILE, so
// that FILE tells until when the job lived at least, however it died:
//
//     B NS PID FENCE KEY MS  the begin, with RLOCK_FENCE, RLOCK_KEY and RLOCK_LEASE_MS
//     H NS PID               a heartbeat of the job or of one of its children
//     E NS PID CODE          the end of the job, which exits with CODE
//
// With --write FILE it writes to that file before each heartbeat.
// NS is CLOCK_BOOTTIME, read before the line is written. One write(2) with O_APPEND is one line.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr long long beat_ns = 5'000'000;
constexpr long long outlived_ns =
    2'000'000'000;  // how much longer the children live than the job, if they are left alone

int file = -1;
int written = -1;  // --write

long long now_ns()
{
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return ts.tv_sec * 1'000'000'000LL + ts.tv_nsec;
}

void sleep_ns(long long ns)
{
  const timespec time{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}

void append(char type, const char* rest)
{
  char line[512];
  const int length = std::snprintf(line, sizeof line, "%c %lld %d%s\n", type, now_ns(), getpid(), rest);
  if (write(file, line, static_cast<std::size_t>(length)) != length) {
    _exit(99);
  }
}

void beat_until(long long end)
{
  for (long long left = end - now_ns(); left > 0; left = end - now_ns()) {
    if (written >= 0 && pwrite(written, "x", 1, 0) != 1) {
      _exit(96);
    }
    append('H', "");
    sleep_ns(left < beat_ns ? left : beat_ns);
  }
}

const char* variable(const char* name)
{
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? "-" : value;
}

// In the job's group, so rlock stops it with the job or after it.
void start_child(long long end)
{
  if (fork() == 0) {
    beat_until(end + outlived_ns);
    _exit(0);
  }
}

// In a session of its own: rlock does not touch it, so it does not count as a part of the job.
void start_daemon()
{
  if (fork() == 0) {
    setsid();
    sleep_ns(500'000'000);
    _exit(0);
  }
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc < 3) {
    return 98;
  }
  file = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  char begin[400];
  std::snprintf(begin, sizeof begin, " %s %s %s", variable("RLOCK_FENCE"), variable("RLOCK_KEY"),
                variable("RLOCK_LEASE_MS"));
  append('B', begin);

  const long long end = now_ns() + std::strtoll(argv[2], nullptr, 10) * 1'000'000;
  int code = 0;
  for (int i = 3; i < argc; ++i) {
    if (std::strcmp(argv[i], "--setsid") == 0) {
      setsid();  // in vain, because rlock makes the job the leader of a group
    } else if (std::strcmp(argv[i], "--ignore-term") == 0) {
      std::signal(SIGTERM, SIG_IGN);
    } else if (std::strcmp(argv[i], "--nobody") == 0) {
      code = setresuid(65534, 65534, 65534) == 0 ? code : 97;
    } else if (std::strcmp(argv[i], "--child") == 0) {
      start_child(end);
    } else if (std::strcmp(argv[i], "--daemon") == 0) {
      start_daemon();
    } else if (std::strcmp(argv[i], "--write") == 0 && i + 1 < argc) {
      if ((written = open(argv[++i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) < 0) {
        return 96;
      }
    } else {
      code = std::atoi(argv[i]);
    }
  }
  beat_until(end);
  char exit_code[16];
  std::snprintf(exit_code, sizeof exit_code, " %d", code);
  append('E', exit_code);
  _exit(code);
}
