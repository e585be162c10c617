// SPDX-License-Identifier: Apache-2.0
// Signals for the processes of one run: which, to which process, and when.
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "judge/records.h"

#include <string>
#include <vector>

namespace rlock::judge {

enum class Trigger {
  spawn,
  handover,  // the job before it ends, while it waits
  begin,
  end
};

struct FaultPlan {
  struct Step {
    Millis after;  // the trigger
    Target target;
    int number;
  };
  Trigger trigger;
  std::vector<Step> steps;
  [[nodiscard]] std::string name() const;  // "KILL runner + STOP guardian"; for the report
};

FaultPlan draw_fault(Rng& rng, Kind kind, Millis ttl);

// What of it rlock must bear when its job has this form; nullopt: nothing. The kernel kills only the job's process group, and what no
// KILL ends lives longer than an rlock that cannot renew.
std::optional<FaultPlan> possible_fault(FaultPlan plan, JobForm form);

// Carries one plan out. The processes are found when the trigger comes, because a later step may find them gone.
class ProcessFault {
 public:
  ProcessFault(FaultPlan plan, const RunRecord& run) : m_plan(std::move(plan)), m_run(run) {}

  // Call it often. `runner`: the process that the storm has started. `freed`: when a job under the same lock ended last.
  // Returns the signals that were sent.
  std::vector<SentSignal> go_on(pid_t runner, Instant freed, Instant now);

  // Continues what it has left stopped.
  std::vector<SentSignal> make_up();

  [[nodiscard]] const FaultPlan& plan() const { return m_plan; }

 private:
  [[nodiscard]] bool is_triggered(Instant freed) const;
  void find_processes(pid_t runner);
  std::vector<SentSignal> send(Target target, int number);

  FaultPlan m_plan;
  const RunRecord& m_run;  // outlives this
  std::optional<Instant> m_triggered;
  std::size_t m_next = 0;
  std::vector<std::pair<Target, Fd>> m_processes;  // pidfds
  std::vector<Target> m_stopped;
};

}  // namespace rlock::judge
