// SPDX-License-Identifier: Apache-2.0
// What a storm must not leave behind: processes and keys.
#pragma once

#include "judge/checks.h"
#include "judge/servers.h"

#include <cstddef>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rlock::judge {

// In the environment of each process of a run, with the pid of the judge and the id of the run.
inline constexpr const char* run_variable = "JUDGE_RUN";
std::string run_mark(std::size_t run);

struct RunningProcess {
  pid_t pid;
  std::string name;  // comm
  std::string run;   // of run_variable
};
std::vector<RunningProcess> processes_of_storm();
std::vector<RunningProcess> processes_of_run(std::size_t run);

// Every key has a ttl, but for the number of permits and their expiries.
Violations check_ttls(Servers& servers);

// When every lease is over, no lock is left.
Violations check_locks_are_free(Servers& servers, const Words& keys);

}  // namespace rlock::judge
