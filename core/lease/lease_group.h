// SPDX-License-Identifier: Apache-2.0
// The leases of one job. If one is lost, all count as lost. Starts their watchdogs and tells when the first lease ends.
#pragma once

#include "base/mutex.h"
#include "lease/lease.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace rlock {

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
