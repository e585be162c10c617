// SPDX-License-Identifier: Apache-2.0
// The lease of one granted lock: when it was last renewed, whether the lock was lost, and the watchdog that renews it.
#pragma once

#include <cstddef>
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

// What a watchdog does with a lease.
struct WatchOptions {
  bool renews;                   // false: a fixed lease, which is only checked
  std::string_view consequence;  // what follows from failed renewals, for the log: "the job will be stopped"
};

struct GrantedLock {
  LockRequest spec;
  Owner owner;
  LeaseTerm lease;
  bool is_claim = false;               // the lease of a Handover, until the first renewal
  std::unique_ptr<Listener> listener;  // the waiter's; null: the watchdog opens one
};

// Threads: used from the main thread. While is_watched(), only the watchdog may use the store.
class Lease {
 public:
  // `kill_after`: LeaseBudget::signal_at. `store`, `clock` and `log` must outlive the lease. While is_watched() only the
  // watchdog may use the store.
  Lease(LockStore& store, GrantedLock lock, Millis kill_after, const Clock& clock, const Log& log);

  [[nodiscard]] const LockRequest& spec() const { return m_lock.spec; }
  [[nodiscard]] const LeaseBudget& budget() const { return m_budget; }  // as of the last stop_watchdog()
  // A lease is watched from then on. A job that ends earlier needs no thread and no second connection. The time of a claim counts
  // from when this was made: after a long wait the begin of its lease is known less precisely than a short job takes.
  [[nodiscard]] Instant watch_from() const;

  // `on_moved` is called by the watchdog with each new lease. Throws std::system_error when there is no descriptor.
  void start_watchdog(const WatchOptions& options, std::function<void(const LeaseBudget&)> on_moved);
  // For a watchdog without a thread (watchdog.h). Without a watchdog: nothing, far_future, -1.
  void act(StopToken interrupt);
  [[nodiscard]] Instant due() const { return m_watchdog ? m_watchdog->due() : far_future; }
  [[nodiscard]] int message_fd() const { return m_watchdog ? m_watchdog->message_fd() : -1; }
  void stop_watchdog();  // returns when the watchdog's thread has ended
  [[nodiscard]] bool is_watched() const { return m_watchdog != nullptr; }

  // Renews the lease once, in the calling thread. A failure sets the event. Do not call this while is_watched().
  void renew(const CallLimits& limit);

  [[nodiscard]] const std::optional<LeaseEvent>& event();
  void discard_event() { m_event.reset(); }
  // Readable when there is an event that event() has not returned yet; -1: no event will come.
  [[nodiscard]] int event_fd() const { return m_watchdog && !m_event ? m_watchdog->fd() : -1; }
  // Readable when the lock is lost after ReleaseRequested, while the job is being stopped; -1: the lease is not watched.
  [[nodiscard]] int lost_fd() const { return m_watchdog && m_event ? m_watchdog->lost_fd() : -1; }
  // Why renewals failed when the watchdog was stopped; empty: no renewal failed.
  [[nodiscard]] const std::string& trouble() const { return m_trouble; }
  void set_trouble(std::string why) { m_trouble = std::move(why); }  // why there is no watchdog

 private:
  LockStore& m_store;
  GrantedLock m_lock;
  LeaseBudget m_budget;
  const Millis m_kill_after;
  const Clock& m_clock;
  const Log& m_log;
  const Instant m_made_at;
  std::unique_ptr<Watchdog> m_watchdog;
  std::optional<LeaseEvent> m_event;
  std::string m_trouble;
};

// The leases of one job. If one is lost, all count as lost. Starts their watchdogs and tells when the first lease ends.

struct LeaseGroupOptions {
  WatchOptions watch;
  // Called with the lease that ends first when one was renewed. Called from watchdog threads, one at a time. May be empty.
  std::function<void(const LeaseBudget&)> on_moved = {};
  StopToken interrupt = StopToken::never();  // ends a request in the main thread early (watchdog.h)
  AnyStop* wakes = nullptr;  // readable when a watchdog has an event; nullptr: none; must outlive the group
};

// Ownership: the leases, the clock and the log must outlive the group. Threads: used from the main thread.
class LeaseGroup {
 public:
  LeaseGroup(LeaseGroupOptions options, const Clock& clock, const Log& log);
  ~LeaseGroup();  // calls stop_watchdogs()
  LeaseGroup(const LeaseGroup&) = delete;
  LeaseGroup& operator=(const LeaseGroup&) = delete;

  void add(Lease& lease);

  // When the caller must call watch(); far_future: never. The caller also calls watch() when the message_fd() of a lease is
  // readable.
  [[nodiscard]] Instant due() const;
  // Starts a watchdog for each lease that has neither a watchdog nor an event, and does the work of watchdogs that have no
  // thread. When a watchdog cannot get a descriptor, due() is the time of the next attempt.
  void watch();
  // Stops all watchdogs; call this before a fork, too. Then due() is now if a watchdog ran, and far_future if a lease has an
  // event.
  void stop_watchdogs();

  Lease* with_event();  // the first lease that has an event; nullptr: no lease has an event

 private:
  void start_watchdogs();
  void start_watchdog(std::size_t which);
  void move(std::size_t which, const LeaseBudget& budget);

  const LeaseGroupOptions m_options;
  const Clock& m_clock;
  const Log& m_log;
  std::vector<Lease*> m_leases;
  Instant m_due = far_future;  // when a watchdog must be started

  Mutex m_mutex;
  std::vector<LeaseBudget> m_budgets GUARDED_BY(m_mutex);  // of the leases, in their order
};

}  // namespace rlock
