// SPDX-License-Identifier: Apache-2.0
// The job before the lock is held: forked, guarded, and waiting at its gate. Work that is done while another job still runs costs
// no time when the lock is handed over.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include "lock/lease_budget.h"
#include "process/job.h"
#include "process/shared_deadline.h"
#include "run/environment.h"
#include "run/request.h"

namespace rlock {

// Ownership: `request` and `context` must outlive the object. The destructor kills a job that was prepared and never started.
// Threads: used from the main thread, except move_deadline() and the functions after it.
class PreparedJob {
 public:
  // `path`: the path of the program. `release`: JobSpec::release_for_runner. `keep`: JobSpec::keep_for_runner.
  PreparedJob(const RunRequest& request, const RunContext& context, std::string path,
              std::function<bool(const std::optional<OrphanedJob>&)> release,
              std::function<std::optional<Instant>()> keep);

  // Forks the job when the runner is the first waiter in line for the last lock that is missing. Does nothing on a terminal,
  // because the waiter must get the terminal's keystrokes until the grant. Ignores a failure, because start() tries again.
  // Threads: call this while the process has one thread.
  void prepare(const std::vector<HeldLock>& locks);

  // The same before the first request for the lock, when the server will probably grant the lock at once.
  void prepare_for_first_request(const std::vector<HeldLock>& locks);
  // Kills a job that was prepared for the first request, because only the first waiter in line keeps a prepared job.
  void discard_after_refusal();

  // Starts the job with the times of the last move_deadline(). Forks the job again if it was prepared under other locks, because
  // an attempt to acquire was released since, or for another lease than the one that was granted. ErrorCode::os: the job could
  // not be forked.
  Result<Job> start(const std::vector<HeldLock>& locks, std::uint64_t fence);

  // Thread-safe.
  void move_deadline(
      const LeaseBudget& lease);  // never_stopped when a lost lock must not stop the job (--on-lost warn)
  void remove_deadline() { m_shared_deadline.move_to(never_stopped); }
  [[nodiscard]] StopTimes stop_times() const { return m_shared_deadline.times(); }

 private:
  void discard();
  void discard_unusable();
  void prepare(const std::vector<HeldLock>& locks, Instant earliest_last_resort);
  [[nodiscard]] StopTimes stop_times(const LeaseBudget& lease) const;
  [[nodiscard]] bool warns_only() const;
  [[nodiscard]] Result<Job> fork_job(const std::vector<HeldLock>& locks, Instant earliest_last_resort);

  const RunRequest& m_request;
  const RunContext& m_context;
  std::string m_path;
  std::function<bool(const std::optional<OrphanedJob>&)> m_release_for_runner;
  std::function<std::optional<Instant>()> m_keep_for_runner;
  SharedDeadline m_shared_deadline;
  std::vector<HeldLock> m_prepared_under;  // the locks in the environment of m_job
  Instant m_earliest_last_resort{};        // that its guardian counts on
  Instant m_usable_until = far_future;     // of a job for the first request: later the last resort would come too soon
  std::optional<Job> m_job;                // uses m_shared_deadline
};

}  // namespace rlock
