// SPDX-License-Identifier: Apache-2.0
// The leases of one job, which are lost together: starts their watchdogs and tells when the first lease ends.
#pragma once

#include "lease/lease.h"

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace rlock {

struct LeaseGroupOptions {
  WatchOptions watch;
  // Called with the end of the lease that ends first: by the watchdogs' threads, but never by two at once. May be
  // empty.
  std::function<void(Instant)> on_moved = {};
  AnyStop* wakes = nullptr;  // becomes readable when a watchdog has an event; null: none; must outlive the group
};

// Used from the main thread. The leases, the clock and the log must outlive the group.
class LeaseGroup {
 public:
  LeaseGroup(LeaseGroupOptions options, const Clock& clock, const Log& log);
  ~LeaseGroup();  // calls stop_watchdogs()
  LeaseGroup(const LeaseGroup&) = delete;
  LeaseGroup& operator=(const LeaseGroup&) = delete;

  void add(Lease& lease);

  [[nodiscard]] Instant due() const { return m_due; }  // when start_watchdogs() must be called; far_future: not again
  // Starts a watchdog for each lease that has none and no event. When there is no thread or descriptor for one, due()
  // is the time of the next attempt.
  void start_watchdogs();
  // For a fork whose child goes on with the leases: no thread of the group runs until due(), which is now unless a
  // lease has an event.
  void stop_watchdogs();

  Lease* with_event();  // the first lease that has an event; null: none has

 private:
  void start_watchdog(std::size_t which);
  void move(std::size_t which, Instant end);

  const LeaseGroupOptions m_options;
  const Clock& m_clock;
  const Log& m_log;
  std::vector<Lease*> m_leases;
  Instant m_due = far_future;

  std::mutex m_mutex;
  std::vector<Instant> m_ends;  // of the leases, in their order; guarded by m_mutex
};

}  // namespace rlock
