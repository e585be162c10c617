// SPDX-License-Identifier: Apache-2.0
// A simulated machine, and `rlock run` as it runs there.
#pragma once

#include "sim/schedule.h"
#include "sim/virtual_job.h"

#include <filesystem>
#include <string>
#include <vector>

namespace rlock::sim {

struct Client {
  explicit Client(const ClientPlan& its_plan) : plan(its_plan), host(its_plan.clock_rate), runs_left(its_plan.runs) {}
  const ClientPlan& plan;
  const Host host;
  int runs_left;
  Process* runner = nullptr;      // of the run that goes on
  Process* nested = nullptr;      // the rlock that its job runs
  std::vector<VirtualJob*> jobs;  // of all its runs
};

[[nodiscard]] bool has_guardian(const VirtualJob& job);
[[nodiscard]] VirtualJob* guarded_job(const Client& of);  // of the run that goes on, or that was killed; nullptr: none

// In the runner's fiber, with the environment of the job that runs it. Returns how the run ended, in words.
std::string run_rlock(const Client& as, const std::vector<std::string>& environment, const Schedule& schedule,
                      const std::filesystem::path& socket);

// `rlock force-unlock` against the holder of a job, in a fiber of its own. Returns how it ended, in words.
std::string force_unlock_job(const Client& of, const VirtualJob& job, Millis grace, const Schedule& schedule,
                             const std::filesystem::path& socket);

}  // namespace rlock::sim
