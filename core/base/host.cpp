// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

#include "base/fd.h"

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace rlock
