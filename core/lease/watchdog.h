// SPDX-License-Identifier: Apache-2.0
// Keeps a lease alive from a thread of its own, and says so when it is not any more.
#pragma once

#include "base/log.h"
#include "base/stop.h"
#include "lease/renewal.h"
#include "lease/server_clock.h"
#include "lock/store.h"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>

namespace rlock {

struct ReleaseRequested {
  std::string by;
};  // still ours, but somebody with the right to asks for it
struct Lost {
  std::string why;
};  // not ours any more: proven
struct Unconfirmed {
  std::string why;
};  // no renewal got through, and the time to stop the job has come. "no renewal for 4s: …"
using LeaseEvent = std::variant<ReleaseRequested, Lost, Unconfirmed>;

// What a renewal says of the lock; nullopt: all is well.
std::optional<LeaseEvent> lease_event_of(const Renewal& renewal);

struct WatchdogOptions {
  LockSpec spec;
  Owner owner;
  bool renews;          // false: a fixed lease, only watched
  Instant acquired_at;  // when the granted request was sent
  Millis kill_margin;
  std::unique_ptr<Listener> listener;               // of who had to wait; missing: the watchdog opens one
  std::function<void(Instant)> on_moved;            // called from the thread with each new valid_until
  std::string_view consequence = "it is given up";  // of renewals that fail, for the log: "the job will be stopped"
};

// All network while holding is this thread's: from construction to stop() nobody else may use the store.
class Watchdog {
 public:
  // `store`, `clock` and `log` must outlive it.
  Watchdog(LockStore& store, WatchdogOptions order, const Clock& clock, const Log& log);
  ~Watchdog();  // stops
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Readable as soon as there is a lease_event. There is one at most. After ReleaseRequested the thread goes on: it renews the lock and
  // says with each renewal that the job is being stopped; after the others it is done.
  [[nodiscard]] int fd() const { return m_event_set.token().fd(); }
  std::optional<LeaseEvent> lease_event();
  // Readable when a lock that is wanted was lost before it was released: proven.
  [[nodiscard]] int lost_fd() const { return m_loss.token().fd(); }

  void stop();  // returns when the thread has ended; the store is the caller's again

  // For a caller that goes on with the lease after stop(): when the last request that kept it was sent, and what hears of it, if
  // anything does.
  [[nodiscard]] Instant last_kept() const { return m_state.last_kept; }
  std::unique_ptr<Listener> take_listener();
  // Why it is not renewed, and for how long, as Unconfirmed has it; empty: it is renewed. For a caller that had to act before
  // there was a lease_event.
  [[nodiscard]] std::string trouble() const;

 private:
  void watch();
  bool record(LeaseEvent lease_event);
  std::optional<LeaseEvent> renew(Instant deadline);
  void failed(const Error& error, Instant sent_at, Instant deadline);
  void tell_failure(const Error& error, Instant failing_since);
  void tell_detail(const std::string& line);
  std::optional<LeaseEvent> answered(Renewal renewal, Instant sent_at);
  void kept(Instant sent_at, const std::optional<ClockSample>& seen);
  void compare_clocks(const ClockSample& seen);
  void listen();
  bool hint_before(Instant until);

  LockStore& m_store;
  WatchdogOptions m_options;
  RenewalPolicy m_policy;  // the thread's own once that runs
  const Clock& m_clock;
  const Log& m_log;

  // The thread's own.
  RenewalState m_state;
  std::unique_ptr<Listener> m_listener;  // set once it hears all that concerns us
  Instant m_listen_at;
  Millis m_listen_pause{0};                  // after the last failure to listen
  std::string m_trouble;                     // what the renewals that fail say
  std::optional<ClockSample> m_last_sample;  // the server's clock, when it last kept the lease
  Millis m_reduction{0};  // how much less of a lease we count on, for the server's clock goes ahead of ours
  std::optional<Instant> m_failing_since;  // when the first of the failures in a row was sent
  bool m_failure_logged = false;           // the log has a notice of them
  Instant m_detail_at{};                   // when the next detail may be logged
  bool m_is_revoked = false;               // renewals are refused
  bool m_renew_at_once = false;

  std::mutex m_mutex;
  std::optional<LeaseEvent> m_event;  // guarded by m_mutex
  StopSource m_event_set;
  StopSource m_loss;
  StopSource m_stop;
  std::thread m_thread;  // last: it starts when everything else is there
};

}  // namespace rlock
