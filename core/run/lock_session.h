// SPDX-License-Identifier: Apache-2.0
// One lock of a request, or any one of several shards, from the request to the release: its owner and its lease.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include "lease/lease.h"
#include "lock/past_run.h"
#include "lock/reentry.h"
#include "run/environment.h"
#include "run/request.h"

namespace rlock {

// The destructor releases no lock; release_all does. Threads: used from the main thread, and not while a watchdog uses the store
// (LeaseGroup).
class LockSession {
 public:
  // `request`, `context` and `store` must outlive the session. `store`: of all locks of the request; the first session that needs it
  // opens it. The first attempt uses `owner`; each attempt after a release uses a fresh
  // owner. A lock that an ancestor of this process holds is entered again under the ancestor's owner.
  LockSession(const RunRequest& request, const RunContext& context, std::unique_ptr<LockStore>& store,
              std::vector<LockSpec> any_of, Owner owner);

  // Whether an ancestor of this process holds the lock. False also where the server does not say so.
  bool is_of_outer_run(const WaitPolicy& policy, StopToken stop, WaitObserver& observer);

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
  [[nodiscard]] std::optional<Shard> shard() const;  // nullopt: the lock is no shard
  [[nodiscard]] const Hold& hold() const { return m_hold; }
  [[nodiscard]] const LockSpec& spec() const { return m_any_of[m_which]; }
  [[nodiscard]] std::uint64_t fence() const { return m_fence; }
  // The guardian calls this, because it was forked before the lock was granted.
  void set_fence(std::uint64_t fence) { m_fence = fence; }
  [[nodiscard]] std::int64_t depth() const { return m_depth; }  // 1: not nested
  [[nodiscard]] Lease& lease() { return *m_lease; }
  [[nodiscard]] const Lease& lease() const { return *m_lease; }

  // For a fixed lease that no process renews: leaves a process that keeps the lease, where the store does not keep it
  // (LockStore::keep_leases). Returns how long the lock would last without it; nullopt: no such process is needed. ErrorCode::os: it
  // could not be started.
  Result<std::optional<Millis>> leave_keeper();
  // The same after releases that keep locks taken (ReleaseOptions::keep). A failure is logged.
  void leave_keeper_of_released();

  Result<Release> release(const ReleaseOptions& options, const CallLimits& limit);
  // Whether a lock that is lost was released by its token. True: the lease no longer has an event.
  bool was_released();
  // Whether the event log of the server has lost the grant of this lock to this owner, although it has lost no entry by its bound.
  // False also where that is unknown.
  bool is_grant_missing(const CallLimits& limit);
  void drop_connection() { m_store->drop_connection(); }
  // The runs under the lock that are over, the last one first; empty: the store has no history.
  Result<std::vector<PastRun>> past_runs(const PerAnswer& limits);
  // Of a lock that was released: now and then, and after each failure, keeps its runs for longer than its event log does
  // (LockStore::keep_runs).
  void keep_runs(bool succeeded);
  // Leaves a word about this run, which did not begin, in the history of the lock, or of the first shard.
  void note_skipped(const SkippedRun& run);

 private:
  Result<Done> open(const WaitPolicy& policy, StopToken stop, WaitObserver& observer);
  [[nodiscard]] std::vector<Ancestor> ancestors() const;
  [[nodiscard]] bool may_begin_on_message() const;
  void begin(Entered entered);

  const RunRequest& m_request;
  const RunContext& m_context;
  std::vector<LockSpec> m_any_of;
  std::size_t m_which = 0;
  Hold m_hold;
  std::uint64_t m_fence = 0;
  std::int64_t m_depth = 1;
  Millis m_lease_length;  // HeldLock::lease
  std::unique_ptr<LockStore>& m_store;
  std::unique_ptr<Lease> m_lease;  // uses m_store; nullptr until the lock is held
};

}  // namespace rlock
