// SPDX-License-Identifier: Apache-2.0
// All locks of one request, and the job that runs under them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include "lease/lease.h"
#include "lock/lease_budget.h"
#include "lock/reentry.h"
#include "process/job.h"
#include "process/shared_deadline.h"
#include "run/environment.h"
#include "run/run.h"

namespace rlock {

// One lock of a request, or any one of several shards, from the request to the release: its owner and its lease.

// The destructor releases no lock; release_all does. Threads: used from the main thread, and not while a watchdog uses the store
// (LeaseGroup).
class LockSession {
 public:
  // `request`, `context` and `store` must outlive the session. `store`: of all locks of the request; the first session that needs it
  // opens it. The first attempt uses `owner`; each attempt after a release uses a fresh
  // owner. A lock that an ancestor of this process holds is entered again under the ancestor's owner.
  LockSession(const RunRequest& request, const RunContext& context, std::unique_ptr<LockStore>& store,
              std::vector<LockRequest> any_of, Owner owner);

  // Done: the lock is held. AlreadyDone: RunRequest::once needs no run. After any other outcome nothing is left on the
  // server, as with wait_and_acquire.
  using Acquired = std::variant<Done, AlreadyDone, TimedOut, Interrupted>;
  Result<Acquired> acquire(const WaitPolicy& policy, StopToken stop, WaitObserver& observer);

  // The name for messages while the session waits: "stock", "stock (5 shards)".
  [[nodiscard]] std::string display_name() const;

  [[nodiscard]] HeldLock held() const;  // before the grant: the lock that is asked for first

  // Whether the wait for the only lock would never end, because this process is below its holder.
  [[nodiscard]] bool waits_for_itself(const Busy& busy) const;

  // Call the following functions when the lock is held.
  [[nodiscard]] const LockName& name() const { return spec().name; }
  [[nodiscard]] std::optional<std::size_t> shard() const;  // the number of the shard; nullopt: the lock is no shard
  [[nodiscard]] const Hold& hold() const { return m_hold; }
  [[nodiscard]] const LockRequest& spec() const { return m_any_of[m_which]; }
  [[nodiscard]] std::uint64_t fence() const { return m_fence; }
  // The guardian calls this, because it was forked before the lock was granted.
  void set_fence(std::uint64_t fence) { m_fence = fence; }
  [[nodiscard]] std::int64_t depth() const { return m_depth; }  // 1: not nested
  [[nodiscard]] Lease& lease() { return *m_lease; }
  [[nodiscard]] const Lease& lease() const { return *m_lease; }

  // For a fixed lease that no process renews: leaves a process that keeps the lease, where the store does not keep it
  // (lock/lease_keeping.h). Returns how long the lock would last without it; nullopt: no such process is needed. ErrorCode::os: it could not be started.
  Result<std::optional<Millis>> leave_keeper();
  // The same after releases that keep locks taken (ReleaseOptions::keep). A failure is logged.
  void leave_keeper_of_released();

  Result<Release> release(const ReleaseOptions& options, const CallLimits& limit);
  // Whether a lock that is lost was released by its token. True: the lease no longer has an event.
  bool was_released(const CallLimits& limit);
  // Whether the event log of the server has lost the grant of this lock to this owner, although it has lost no entry by its bound.
  // False also where that is unknown.
  bool is_grant_missing(const CallLimits& limit);
  void drop_connection() { m_store->drop_connection(); }
  // The runs under the lock that are over, the last one first; empty: the store has no history.
  Result<std::vector<PastRun>> past_runs(const PerAnswer& limits);
  // Of a lock that was released: now and then, and after each failure, keeps its runs for longer than its event log does
  // (RunHistory::keep_runs).
  void keep_runs(bool succeeded);
  // Leaves a word about this run, which did not begin, in the history of the lock, or of the first shard.
  void note_skipped(const SkippedRun& run);

 private:
  [[nodiscard]] std::vector<Ancestor> ancestors() const;
  [[nodiscard]] bool may_begin_on_message() const;
  void begin(Entered entered);

  const RunRequest& m_request;
  const RunContext& m_context;
  std::vector<LockRequest> m_any_of;
  std::size_t m_which = 0;
  Hold m_hold;
  std::uint64_t m_fence = 0;
  std::int64_t m_depth = 1;
  Millis m_lease_length;  // HeldLock::lease
  std::unique_ptr<LockStore>& m_store;
  std::unique_ptr<Lease> m_lease;  // uses m_store; nullptr until the lock is held
};

// The job before the lock is held: forked, guarded, and waiting at its gate. Work that is done while another job still runs costs
// no time when the lock is handed over.

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
  void request_refused();

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

// Each attempt to acquire has a set, and so an owner, of its own: what an earlier attempt could not release is left to its ttl,
// and a late release cannot end a lock that is held now.
// Ownership: `request` and `context` must outlive the set.
// Threads: used from the main thread.
struct LockSet {
  // `path`: of the job's program; nullopt: no job runs under the locks.
  LockSet(const RunRequest& request, const RunContext& context, const std::optional<std::string>& path);
  LockSet(const LockSet&) = delete;  // the prepared job points to the sessions
  LockSet& operator=(const LockSet&) = delete;

  [[nodiscard]] std::vector<HeldLock> held_locks() const;

  // Call this when all locks are held.
  [[nodiscard]] const LockSession& first_to_expire() const;

  std::unique_ptr<LockStore> store;   // nullptr until a session has opened it
  std::vector<LockSession> sessions;  // in the order of acquisition; use the store
  int attempt = 1;                    // the number of this run of the job, of RunRequest::attempts
  std::optional<PreparedJob> prepared_job;
};

}  // namespace rlock
