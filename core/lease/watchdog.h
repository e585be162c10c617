// SPDX-License-Identifier: Apache-2.0
// Renews one lease, and reports when the lock must be given up. The watchdog works in a thread of its own, or, where the system
// refuses a thread, in the thread of its caller.
#pragma once

#include "base/log.h"
#include "base/stop.h"
#include "lease/renewal.h"
#include "lock/store.h"

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <variant>

namespace rlock {

// The lock is still held, but another client requests its release.
struct ReleaseRequested {
  std::string by;
};
// An answer of the server proves that the lock is no longer held.
struct Lost {
  NotHeld found;
};
// No renewal succeeded, and the time to stop the job has come. `why`: "no renewal for 4s: …".
struct Unconfirmed {
  std::string why;
};
using LeaseEvent = std::variant<ReleaseRequested, Lost, Unconfirmed>;

// The answer to a renewal came after the end of the lease, which it does not extend: another client may have held the lock
// meanwhile.
LeaseEvent answered_too_late();

// nullopt: the lock is held, and no client asks for it.
std::optional<LeaseEvent> lease_event_of(const Renewal& renewal);

struct WatchdogOptions {
  LockRequest spec;
  Owner owner;
  bool renews;  // false: a fixed lease, which is only checked
  LeaseBudget lease;
  bool is_claim = false;                             // GrantedLock::is_claim: renewed at once
  Millis kill_after;                                 // LeaseBudget::signal_at: then the lock is given up
  std::unique_ptr<Listener> listener;                // the waiter's; null: the watchdog opens one
  std::function<void(const LeaseBudget&)> on_moved;  // called by the thread with each new lease
  std::string_view consequence = "it is given up";   // of failed renewals, for the log: "the job will be stopped"
};

// Ownership: owns its thread. Threads: the caller uses the public functions from one other thread. From construction to stop()
// only the watchdog's thread may use the store; without that thread, only act() may.
class Watchdog {
 public:
  // `store`, `clock` and `log` must outlive the watchdog. Throws std::system_error when there is no free descriptor.
  Watchdog(LockStore& store, WatchdogOptions options, const Clock& clock, const Log& log);
  ~Watchdog();  // calls stop()
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Readable when there is a lease event; there is at most one. After Lost and Unconfirmed the thread ends. After
  // ReleaseRequested the thread goes on to renew the lock, and each renewal says that the job is being stopped.
  [[nodiscard]] int fd() const { return m_event_set.token().fd(); }
  std::optional<LeaseEvent> event();
  // Readable when the lock is lost after ReleaseRequested.
  [[nodiscard]] int lost_fd() const { return m_loss.token().fd(); }

  // Where the system refuses a thread, the caller calls act() when due() has come or message_fd() is readable. act() sends one
  // request at most, which ends early when `interrupt` is requested, and now and then tries again to start the thread.
  [[nodiscard]] bool has_thread() const { return m_thread.joinable(); }
  void act(StopToken interrupt);
  [[nodiscard]] Instant due() const;     // far_future: there is a thread, or nothing to do
  [[nodiscard]] int message_fd() const;  // -1: there is a thread, or the watchdog awaits no message

  void stop();  // returns when the thread has ended; the caller may use the store again

  // After stop(), for a caller that goes on with the lease.
  [[nodiscard]] const LeaseBudget& lease() const { return m_state.lease; }
  [[nodiscard]] bool is_claim() const { return m_options.is_claim; }
  std::unique_ptr<Listener> take_listener();  // null: there is none
  // Why renewals fail and for how long, in the words of Unconfirmed; empty: they succeed. After stop(), for a caller
  // that had to act before there was an event.
  [[nodiscard]] std::string trouble() const;

 private:
  void start_thread();
  [[nodiscard]] std::string refusal() const;
  void watch();
  void advance();
  void rest_until(Instant until);
  bool record(LeaseEvent event);
  std::optional<LeaseEvent> renew(Instant deadline);
  void note_failure(const Error& error, Instant sent_at, Instant deadline);
  void log_failure(const Error& error, Instant failing_since);
  void log_detail(const std::string& line);
  std::optional<LeaseEvent> handle_answer(Renewal renewal, Instant sent_at);
  void note_success(Instant sent_at, const std::optional<LeaseTerm>& lease, const std::optional<ClockSample>& sample);
  void plan_renewals(Instant sent_at);
  void compare_clocks(const ClockSample& sample, Millis length);
  bool has_news();
  void listen();
  bool is_renewal_worthwhile();

  LockStore& m_store;
  WatchdogOptions m_options;  // only the thread uses this member and those up to m_mutex
  RenewalPolicy m_policy;
  const Clock& m_clock;
  const Log& m_log;

  RenewalState m_state;
  std::unique_ptr<Listener> m_listener;  // nullptr until it is subscribed to all messages about the lock
  Instant m_hear_at{};                   // when messages are read again
  Instant m_listen_at;
  Millis m_listen_pause{0};                  // the pause after the last failure to listen
  std::string m_trouble;                     // why renewals fail
  std::optional<ClockSample> m_last_sample;  // the sample of the last successful renewal
  Millis m_reduction{0};                     // lease_reduction(), because the server's clock runs ahead
  std::optional<Instant> m_failing_since;    // when the first of the failed renewals in a row was sent
  bool m_failure_logged = false;             // a notice has told the failure
  Instant m_detail_at{};                     // when the next detail may be logged
  bool m_is_revoked = false;                 // the server refuses renewals
  bool m_renew_at_once = false;
  bool m_is_stopping = false;  // the job, because the lock was requested
  bool m_is_over = false;
  StopToken m_interrupt = StopToken::never();  // interrupts the request in progress
  Instant m_wake_at{};  // when advance() has something to do, unless m_wake_fd is readable before
  int m_wake_fd = -1;
  std::string m_refused;  // why there is no thread; empty: there is one
  Instant m_thread_at{};  // when the next attempt to start the thread is due

  Mutex m_mutex;
  std::optional<LeaseEvent> m_event GUARDED_BY(m_mutex);
  StopSource m_event_set;
  StopSource m_loss;
  StopSource m_stop;
  std::thread m_thread;
};

}  // namespace rlock
