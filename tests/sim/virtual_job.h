// SPDX-License-Identifier: Apache-2.0
// Jobs and guardians in virtual time. virtual_job.cpp defines the class Job of process/job.h once more, so that this program
// has it instead of the one that forks. The guardian is a fiber; it speaks the real messages with the runner, and the real
// next_step of process/stopping.h decides. The kernel's last resort (process/last_resort.h) is modelled as promised: the job
// dies with its guardian, and a timer that the guardian has set kills the guardian, also when it is stopped.
#pragma once

#include "process/job.h"
#include "sim/world.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rlock::sim {

// How the job of one run behaves.
struct JobBehavior {
  Millis lasts{100};
  bool ignores_term = false;
};

struct VirtualJob {
  int client = 0;
  Process* runner = nullptr;
  Process* guardian = nullptr;
  int runners_end = -1;  // of the socket between the two
  JobBehavior behavior;
  std::vector<std::string> environment;
  std::string owner;       // of the lock, from the environment
  bool is_nested = false;  // a hold of an owner that has another one
  std::uint64_t fence = 0;
  const SharedDeadline* deadline = nullptr;
  bool is_alive = false;
  bool has_run = false;
  Nanos began = 0;
  Nanos died = 0;
  int status = 0;           // as from waitpid(2)
  int exit_event = -1;      // readable for the guardian: the job has ended
  std::uint64_t timer = 0;  // counts the settings of the kernel's timer
};

// What the simulation does for jobs, and wants to know of them.
struct JobHooks {
  std::function<JobBehavior(const Process& runner)> behavior;
  std::function<void(VirtualJob& job)> prepared;
  std::function<void(VirtualJob& job)> began;
  std::function<void(VirtualJob& job)> died;
};
void set_job_hooks(JobHooks hooks);

void begin_job(VirtualJob& job);
void end_job(VirtualJob& job, int status);
void kill_job(VirtualJob& job);       // by KILL
void kill_guardian(VirtualJob& job);  // and so the job

}  // namespace rlock::sim
