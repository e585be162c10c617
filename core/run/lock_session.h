// SPDX-License-Identifier: Apache-2.0
// One lock of a job, or any one of several shards, from the request to the release: its store, its owner and its lease.
#pragma once

#include "lease/lease.h"
#include "lock/reentry.h"
#include "run/run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rlock {

// Ownership: owns the store. The destructor stops the watchdog and releases no lock; release_all does. Threads: used from the
// main thread.
class LockSession {
 public:
  // `request` and `context` must outlive the session. The first attempt uses `owner`; each attempt after a release uses a fresh
  // owner. A lock that an ancestor of this process holds is entered again under the ancestor's owner.
  LockSession(const RunRequest& request, const RunContext& context, std::vector<LockSpec> any_of, Owner owner);

  // Done: the lock is held. AlreadyDone: RunRequest::once needs no run. After any other outcome nothing is left on the
  // server, as with wait_and_acquire.
  using Outcome = std::variant<Done, AlreadyDone, TimedOut, Interrupted>;
  Result<Outcome> acquire(const WaitPolicy& policy, StopToken stop, WaitObserver& observer);

  // The name for messages while the session waits: "stock", "stock (5 shards)".
  [[nodiscard]] std::string display_name() const;

  // Call the following functions when the lock is held.
  [[nodiscard]] const LockName& name() const { return spec().name; }
  [[nodiscard]] std::optional<std::size_t> shard() const;  // the number of the shard; nullopt: the lock is no shard
  [[nodiscard]] const Hold& hold() const { return m_hold; }
  [[nodiscard]] const LockSpec& spec() const { return m_any_of[m_which]; }
  [[nodiscard]] std::uint64_t fence() const { return m_grant.fence; }
  // The guardian calls this, because it was forked before the lock was granted.
  void set_fence(std::uint64_t fence) { m_grant.fence = fence; }
  [[nodiscard]] std::int64_t depth() const { return std::max<std::int64_t>(m_grant.count, 1); }  // 1: not nested
  [[nodiscard]] Lease& lease() { return *m_lease; }
  [[nodiscard]] const Lease& lease() const { return *m_lease; }

  // Ends all threads of the lease and of the store, so that the process can fork.
  void stop_threads();

  Result<Release> release(const ReleaseOptions& options, const CallLimits& limit);
  // Whether a lock that is lost was released by its token. True: the lease no longer has an event.
  bool was_released(const CallLimits& limit);
  void forget_connection() { m_store->forget(); }
  // Records in the history of the lock, or of the first shard, that this run did not begin.
  void note_skipped(const SkippedRun& run);

 private:
  [[nodiscard]] std::vector<Ancestor> ancestors() const;
  [[nodiscard]] bool may_begin_on_message() const;
  void begin(Entered entered);

  const RunRequest& m_request;
  const RunContext& m_context;
  std::vector<LockSpec> m_any_of;
  std::size_t m_which = 0;
  Hold m_hold;
  Granted m_grant{};
  std::unique_ptr<LockStore> m_store;
  std::unique_ptr<Lease> m_lease;  // uses m_store; nullptr until the lock is held
};

}  // namespace rlock
