// SPDX-License-Identifier: Apache-2.0
#include "base/system.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>
#include "base/fd.h"

namespace rlock {
namespace {

bool has_pidfds() { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))).get() >= 0; }

// Sets the value that is set already.
bool has_death_signal()
{
  int signal = 0;
  return ::prctl(PR_GET_PDEATHSIG, &signal) == 0 && ::prctl(PR_SET_PDEATHSIG, signal) == 0;
}

bool has_boot_clock()
{
  timespec now{};
  return ::clock_gettime(CLOCK_BOOTTIME, &now) == 0;
}

bool has_proc() { return Fd(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC)).get() >= 0; }

}  // namespace

HostFacts host_facts(bool child_signal_ignored)
{
  constexpr std::pair<const char*, bool (*)()> ways[] = {{"pidfd_open", has_pidfds},
                                                         {"PR_SET_PDEATHSIG", has_death_signal},
                                                         {"CLOCK_BOOTTIME", has_boot_clock},
                                                         {"/proc", has_proc}};
  HostFacts facts{.missing = {}, .child_signal_ignored = child_signal_ignored};
  for (const auto& [name, is_there] : ways) {
    if (!is_there()) {
      facts.missing.push_back(std::string(name) + " (" + std::generic_category().message(errno) + ")");
    }
  }
  return facts;
}

namespace {

char* title_start = nullptr;
std::size_t title_size = 0;

}  // namespace

// The kernel puts the strings of both next to each other.
void keep_title(char** argv)
{
  char* end = argv[0];
  for (char** const strings : {argv, environ}) {
    for (char** each = strings; *each != nullptr; ++each) {
      end = *each == end ? end + std::strlen(end) + 1 : end;
    }
  }
  title_start = argv[0];
  title_size = static_cast<std::size_t>(end - title_start);
}

void replace_title(const char* text)
{
  if (title_size > 0) {
    std::memset(title_start, 0, title_size);
    std::copy_n(text, std::min(title_size - 1, std::strlen(text)), title_start);
  }
}

void use_batch_scheduling()
{
  if (::sched_getscheduler(0) == SCHED_OTHER) {
    const sched_param no_priority{};
    ::sched_setscheduler(0, SCHED_BATCH, &no_priority);
  }
}

void yield_core() { ::sched_yield(); }

}  // namespace rlock
