// SPDX-License-Identifier: Apache-2.0
// One lock of the job's, or any one of several that will do, from when it is asked for to its release: where it is kept,
// by whom it is held, its lease, and who watches that.
#pragma once

#include "lease/watchdog.h"
#include "lock/reentry.h"
#include "run/run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlock {

// Used from the main thread. Its destructor ends the watchdog, and releases nothing: let_go does.
class LockSession {
 public:
  // `request` and `world` must outlive it. `owner` is the one that asks first: an ancestor's is used where that holds the lock
  // already, and a fresh one after each attempt that had to be taken back.
  LockSession(const RunRequest& request, const RunContext& context, std::vector<LockSpec> any_of, Owner owner);

  // Done: it is ours. AlreadyDone: and need not be, as RunRequest::once has it. Otherwise nothing of ours is left on the server, as with wait_and_acquire.
  using Outcome = std::variant<Done, AlreadyDone, TimedOut, Interrupted>;
  Result<Outcome> take(const WaitPolicy& policy, StopToken stop, WaitObserver& observer);

  // For people, before it is ours: "stock", "stock (5 shards)".
  [[nodiscard]] std::string wanted() const;

  // Of a lock that is ours.
  [[nodiscard]] const LockName& name() const { return spec().name; }
  [[nodiscard]] std::optional<std::size_t> shard() const;  // which one it is, where any of several would have done
  [[nodiscard]] const Hold& hold() const { return m_hold; }
  [[nodiscard]] const LockSpec& spec() const { return m_any_of[m_which]; }
  [[nodiscard]] std::uint64_t fence() const { return m_taken.grant.fence; }
  [[nodiscard]] std::int64_t depth() const { return std::max<std::int64_t>(m_taken.grant.count, 1); }  // 1: not nested
  [[nodiscard]] Instant kept_at() const
  {
    return m_taken.sent_at;
  }  // when it was last known to be kept, unless watched
  [[nodiscard]] Instant valid_until() const;
  // A lease younger than that needs no watching: a short job pays two round trips and nothing else, no thread, no
  // second connection.
  [[nodiscard]] Instant watch_from() const;

  // A thread that keeps it, while other locks are waited for; or while the job runs, as the request says, with what is to
  // happen when the lease moves (called from that thread). Throws std::system_error when there is no thread or
  // descriptor for it.
  void keep();
  void watch(std::function<void(Instant)> moved);
  void unwatch();  // that thread has ended when this returns

  [[nodiscard]] bool is_watched() const { return m_watchdog != nullptr; }
  // Readable when there is a lease_event that was not looked for yet; -1: there will be none.
  [[nodiscard]] int event_fd() const { return m_watchdog && !m_event ? m_watchdog->fd() : -1; }
  [[nodiscard]] const std::optional<LeaseEvent>& lease_event();
  // Readable when a lock that another client asked for was lost while its job was being stopped; -1: not watched.
  [[nodiscard]] int lost_fd() const { return m_watchdog && m_event ? m_watchdog->lost_fd() : -1; }
  // Why its renewals failed when it was last watched; empty: they did not.
  [[nodiscard]] const std::string& trouble() const { return m_trouble; }

  // Renews it once, from here, which ends in a lease_event if it is not all well. Not while it is watched.
  void renew(const CallLimits& limit);

  // Before a fork whose child goes on with it: nothing of ours runs, nobody watches.
  void rest();

  Result<Release> release(const ReleaseOptions& release_options, const CallLimits& limit);
  // Of a lock that is gone: whether it was let go of by its token, and not lost, as is then the lease_event.
  bool was_released(const CallLimits& limit);
  void forget() { m_store->forget(); }  // the connection

 private:
  [[nodiscard]] std::vector<Ancestor> ancestors() const;
  void start_watchdog(bool renews, std::function<void(Instant)> moved, std::string_view consequence);

  const RunRequest& m_request;
  const RunContext& m_context;
  std::vector<LockSpec> m_any_of;
  std::size_t m_which = 0;
  Hold m_hold;
  std::unique_ptr<LockStore> m_store;  // the watchdog's while there is one
  Taken m_taken;
  std::unique_ptr<Watchdog> m_watchdog;
  bool m_renews = false;  // the watchdog does
  std::optional<LeaseEvent> m_event;
  std::string m_trouble;
};

}  // namespace rlock
