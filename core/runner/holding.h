// SPDX-License-Identifier: Apache-2.0
// One lock of the job's, from when it is asked for to its release: where it is kept, by whom it is held, its lease, and who
// watches that.
#pragma once

#include "lock/waiting.h"
#include "runner/run.h"
#include "watch/watchdog.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

namespace rlock {

// Used from the main thread. Its destructor ends the watchdog, and releases nothing: let_go does.
class Holding {
 public:
  // `request` and `world` must outlive it. `owner` is used unless an ancestor of ours holds the lock already.
  Holding(const RunRequest& request, const World& world, LockSpec spec, Owner owner);

  // Done: it is ours. AlreadyDone: and need not be, as RunRequest::once has it. Otherwise nothing of ours is left on the server, as with wait_and_acquire.
  using Outcome = std::variant<Done, AlreadyDone, TimedOut, Interrupted>;
  Result<Outcome> take(const WaitPolicy& policy, Stop stop, Onlooker& onlooker);

  // Of a lock that is ours.
  [[nodiscard]] const LockName& name() const { return m_spec.name; }
  [[nodiscard]] const Owner& owner() const { return m_hold.owner; }
  [[nodiscard]] std::uint64_t fence() const { return m_taken.grant.fence; }
  [[nodiscard]] std::int64_t depth() const { return std::max<std::int64_t>(m_taken.grant.count, 1); }  // 1: not nested
  [[nodiscard]] Instant kept_at() const { return m_taken.sent_at; }  // when it was last known to be kept, unless watched
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
  // Readable when there is a verdict that was not looked for yet; -1: there will be none.
  [[nodiscard]] int verdict_fd() const { return m_watchdog && !m_verdict ? m_watchdog->fd() : -1; }
  [[nodiscard]] const std::optional<Verdict>& verdict();

  // Renews it once, from here, which ends in a verdict if it is not all well. Not while it is watched.
  void renew(const Limit& limit);

  Result<Release> release(const Parting& parting, const Limit& limit);
  void forget() { m_store->forget(); }  // the connection

 private:
  void start_watchdog(bool renews, std::function<void(Instant)> moved);

  const RunRequest& m_request;
  const World& m_world;
  LockSpec m_spec;
  Hold m_hold;
  std::unique_ptr<LockStore> m_store;  // the watchdog's while there is one
  Taken m_taken{};
  std::unique_ptr<Watchdog> m_watchdog;
  bool m_renews = false;  // the watchdog does
  std::optional<Verdict> m_verdict;
};

}  // namespace rlock
