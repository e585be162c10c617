// SPDX-License-Identifier: Apache-2.0
// The leases of granted locks: when they were last renewed, whether a lock was lost, and the watchdog that renews them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/stop.h"
#include "lease/watchdog.h"
#include "lock/lease_budget.h"

namespace rlock {

struct GrantedLock {
  LockSpec spec;
  Owner owner;
  LeaseTerm lease;
  bool is_claim = false;               // the lease of a Handover, until the first renewal
  std::unique_ptr<Listener> listener;  // the waiter's; null: the watchdog opens one
};

// Threads: used from the main thread. While a watchdog renews the lease (LeaseGroup), only that may use the store.
class Lease {
 public:
  // `kill_after`: LeaseBudget::signal_at. `store` and `clock` must outlive the lease.
  Lease(LockStore& store, GrantedLock lock, Millis kill_after, const Clock& clock);

  [[nodiscard]] LockStore& store() const { return m_store; }
  [[nodiscard]] const LockSpec& spec() const { return m_lock.spec; }
  [[nodiscard]] const LeaseBudget& budget() const { return m_budget; }  // as of the last LeaseGroup::stop_watchdog()
  // A lease is watched from then on. A job that ends earlier needs no thread and no second connection. The time counts from when this
  // was made, or from a later renewal: a lease may begin earlier than its grant by more than a short job takes.
  [[nodiscard]] Instant watch_from() const;

  // Renews the lease once, in the calling thread. A failure sets the event. Do not call this while a watchdog renews it.
  void renew(const CallLimits& limit);

  // As of the last LeaseGroup::take_news().
  [[nodiscard]] const std::optional<LeaseEvent>& event() const { return m_event; }
  void discard_event() { m_event.reset(); }
  // Whether the lock was lost after ReleaseRequested, while the job was being stopped.
  [[nodiscard]] bool is_lost_later() const { return m_is_lost_later; }
  // Whether the watchdog renews it and will tell when it cannot: there is no event, or ReleaseRequested while the store still renews.
  [[nodiscard]] bool is_kept() const;
  // Why renewals failed when the watchdog was stopped; empty: no renewal failed.
  [[nodiscard]] const std::string& trouble() const { return m_trouble; }

 private:
  friend class LeaseGroup;
  bool note(LeaseNews news);
  [[nodiscard]] LeaseWatchOptions watch_options(bool renews, std::string_view consequence) const;
  void resume(const LeaseWatch& watch, std::string trouble);

  LockStore& m_store;
  GrantedLock m_lock;
  LeaseBudget m_budget;
  const Millis m_kill_after;
  const Clock& m_clock;
  const Instant m_made_at;
  std::optional<LeaseEvent> m_event;
  bool m_is_lost_later = false;
  bool m_is_over = false;  // the watchdog renews it no more
  std::string m_trouble;
};

// The leases of one job, on one store. If one is lost, all count as lost. Starts their watchdog and tells when the first lease ends.

struct LeaseGroupOptions {
  bool renews = true;                               // false: fixed leases, which are only checked
  std::string_view consequence = "it is given up";  // of failed renewals, for the log: "the job will be stopped"
  // Called with the lease that ends first when one was renewed, in the thread of the watchdog. May be empty.
  std::function<void(const LeaseBudget&)> on_moved = {};
  StopToken interrupt = StopToken::never();  // ends a request in the main thread early (watchdog.h)
  bool has_thread = true;                    // false: watch() renews, in the calling thread
};

// Ownership: the leases, their store, the clock and the log must outlive the group. Threads: used from the main thread.
class LeaseGroup {
 public:
  LeaseGroup(LeaseGroupOptions options, const Clock& clock, const Log& log);
  ~LeaseGroup();  // calls stop_watchdog()
  LeaseGroup(const LeaseGroup&) = delete;
  LeaseGroup& operator=(const LeaseGroup&) = delete;

  // Before the watchdog has a thread.
  void add(Lease& lease);

  // When the caller must call watch(); far_future: never. The caller also calls watch() when message_fd() is readable.
  [[nodiscard]] Instant due() const;
  [[nodiscard]] int message_fd() const { return m_watchdog ? m_watchdog->message_fd() : -1; }
  // Starts the watchdog of the leases that are kept, and does its work if it has no thread. When the watchdog cannot get a
  // descriptor, due() is the time of the next attempt.
  void watch();
  // Calls watch() until nothing is due, `stop` is requested or a lease has an event, but only as often as there are leases: where
  // renewals take as long as their period, something is always due.
  void watch_all_due(StopToken stop);
  [[nodiscard]] bool is_watched() const { return m_watchdog != nullptr; }
  // Call this before a fork, too. Then due() is now if there was a watchdog, and far_future if a lease has an event.
  void stop_watchdog();
  // Without a watchdog: has watch() watch the leases that are kept again, although one has an event.
  void go_on();

  // Readable when take_news() has news; -1: nothing is watched.
  [[nodiscard]] int fd() const { return m_watchdog ? m_watchdog->fd() : -1; }
  // The leases that have an event, or are lost later, since the last call.
  std::vector<Lease*> take_news();
  Lease* with_event();  // the first lease that has an event; nullptr: no lease has an event

 private:
  void start_watchdog();
  [[nodiscard]] LeaseWatch watch_of(const Lease& lease) const;

  const LeaseGroupOptions m_options;
  const Clock& m_clock;
  const Log& m_log;
  std::vector<Lease*> m_leases;
  Instant m_due = far_future;            // when the watchdog must be started
  std::vector<Lease*> m_watched;         // by the watchdog, in its order
  std::unique_ptr<Listener> m_listener;  // of the last watchdog, for the leases in m_watched
  std::unique_ptr<Watchdog> m_watchdog;
};

}  // namespace rlock
