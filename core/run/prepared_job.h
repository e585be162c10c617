// SPDX-License-Identifier: Apache-2.0
// The job, made ready before the lock is ours, as far as that is possible: forked, guarded, and waiting at its gate. What
// is done while another job still runs costs nothing when the lock is handed over.
#pragma once

#include "process/job.h"
#include "run/environment.h"
#include "run/run.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rlock {

// Everything it refers to must outlive it. A job that was prepared and never let go dies with it.
class PreparedJob {
 public:
  // `release`: JobSpec::release_for_runner.
  PreparedJob(const RunRequest& request, const RunContext& context, std::string path,
              std::function<bool(Instant)> release);

  // For the first waiter in line for the last lock that it needs, while the process has one thread. On a terminal
  // nothing is done yet: until the lock is granted the keys that stop and end a job are for the waiter. A failure is
  // no error: start() tries again.
  void get_ready(const std::vector<HeldLock>& locks);

  // Lets it go, under locks that are held until then. A job that was prepared under others, because an attempt had to be taken
  // back since, is prepared anew. ErrorCode::os when it could not be forked.
  Result<Job> start(const std::vector<HeldLock>& locks, Instant valid_until, std::uint64_t fence);

  // Far in the future when a lost lock is to leave the job alone.
  [[nodiscard]] SharedDeadline& shared_deadline() { return m_shared_deadline; }
  void move_deadline(Instant valid_until);

 private:
  void discard_killed();
  [[nodiscard]] Result<Job> prepare(const std::vector<HeldLock>& locks);

  const RunRequest& m_request;
  const RunContext& m_context;
  std::string m_path;
  std::function<bool(Instant)> m_release_for_runner;
  SharedDeadline m_shared_deadline;
  std::vector<HeldLock> m_prepared_under;  // what the environment of m_job tells
  std::optional<Job> m_job;                // uses m_lifeline: dies first
};

// How long before the end of a lease each step against its job is due.
struct StopLeads {
  Millis signal;  // the guardian sends the stop signal
  Millis kill;    // the guardian sends KILL
  // The runner kills a guardian that has not finished, and the job; the kernel does where the runner does not. A killed process
  // needs that time to die on a loaded machine.
  Millis last_resort;
};
StopLeads stop_leads(const RunRequest& request);

}  // namespace rlock
