// SPDX-License-Identifier: Apache-2.0
// The job before the lock is held: forked, guarded, and waiting at its gate. What is prepared while another job still
// runs costs no time when the lock is handed over.
#pragma once

#include "lock/validity.h"
#include "process/job.h"
#include "process/shared_deadline.h"
#include "run/environment.h"
#include "run/run.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rlock {

// Used from the main thread, except move_deadline(). `request` and `context` must outlive it. A job that was prepared
// and never started is killed by the destructor.
class PreparedJob {
 public:
  // `path`: of the program. `release` and `keep`: JobSpec::release_for_runner, JobSpec::keep_for_runner.
  PreparedJob(const RunRequest& request, const RunContext& context, std::string path,
              std::function<bool(const std::optional<OrphanedJob>&)> release,
              std::function<std::optional<Instant>()> keep);

  // Forks the job for the first waiter in line for the last lock that is missing. To be called while the process has
  // one thread. Does nothing on a terminal: until the grant its keys must reach the waiter. Ignores a failure, because
  // start() tries again.
  void prepare(const std::vector<HeldLock>& locks);

  // The same before the lock is asked for, when it will probably be granted at once.
  void prepare_for_first_request(const std::vector<HeldLock>& locks);
  // Kills a job that was prepared for the first request: only the first waiter in line keeps one.
  void request_refused();

  // Starts the job by the times of the last move_deadline(). Forks it anew when it was prepared under other locks,
  // because an attempt to acquire was released since. ErrorCode::os: it could not be forked.
  Result<Job> start(const std::vector<HeldLock>& locks, std::uint64_t fence);

  // Thread-safe.
  void move_deadline(const LeaseTerm& lease);  // never_stopped when a lost lock must not stop the job (--on-lost warn)
  void remove_deadline() { m_shared_deadline.move_to(never_stopped); }
  [[nodiscard]] StopTimes stop_times() const { return m_shared_deadline.times(); }

 private:
  void discard();
  void discard_unusable();
  void prepare(const std::vector<HeldLock>& locks, Instant earliest_last_resort);
  [[nodiscard]] StopTimes stop_times(const LeaseTerm& lease) const;
  [[nodiscard]] bool warns_only() const;
  [[nodiscard]] Result<Job> fork_job(const std::vector<HeldLock>& locks, Instant earliest_last_resort);

  const RunRequest& m_request;
  const RunContext& m_context;
  std::string m_path;
  std::function<bool(const std::optional<OrphanedJob>&)> m_release_for_runner;
  std::function<std::optional<Instant>()> m_keep_for_runner;
  SharedDeadline m_shared_deadline;
  std::vector<HeldLock> m_prepared_under;  // the locks in the environment of m_job
  Instant m_usable_until = far_future;     // of a job for the first request: later the last resort would come too soon
  std::optional<Job> m_job;                // uses m_shared_deadline
};

// How long before the end of a lease of that length each of the StopTimes comes. At the last resort the runner kills the
// job, and a guardian that has not finished; the kernel does where the runner does not. A killed process needs that time
// to die on a loaded machine.
struct StopLeads {
  Millis signal;
  Millis kill;
  Millis last_resort;
};
StopLeads stop_leads(Millis lease, Millis kill_after);

}  // namespace rlock
