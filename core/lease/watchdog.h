// SPDX-License-Identifier: Apache-2.0
// Renews the leases of a job, and reports when a lock must be given up. The watchdog works in a thread of its own or in the thread
// of its caller: where the system refuses a thread, or where the caller wants none.
//
// What is due together is asked for together. A lease that could not be renewed is asked for after and apart from the others, so a
// lock whose server does not answer delays the others by one request at most.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include "base/log.h"
#include "base/stop.h"
#include "lease/lease_watch.h"
#include "lock/store.h"

namespace rlock {

struct LeaseNews {
  std::size_t which;  // the index of the lease
  LeaseEvent event;
  bool is_over;  // LeaseWatch::is_over
};

struct WatchdogOptions {
  std::vector<LeaseWatch> leases;      // at least one
  std::unique_ptr<Listener> listener;  // of the only lease, from its wait; nullptr: the watchdog opens one
  // Called with the lease that ends first when there are new ones, in the thread that renews.
  std::function<void(const LeaseBudget&)> on_moved;
  bool has_thread = true;  // false: the caller calls act()
};

// Ownership: owns its thread. Threads: the caller uses the public functions from one other thread. From construction to stop()
// only the watchdog's thread may use the store; without that thread, the caller may.
class Watchdog {
 public:
  // `store`, `clock` and `log` must outlive the watchdog. Throws std::system_error when there is no free descriptor.
  Watchdog(LockStore& store, WatchdogOptions options, const Clock& clock, const Log& log);
  ~Watchdog();  // calls stop()
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // One more lease of a watchdog without a thread, which listens to messages about this lock from `listen_at` on.
  void add(LeaseWatch lease, Instant listen_at);

  // Readable when take_news() has news.
  [[nodiscard]] int fd() const { return m_has_news.token().fd(); }
  // What LeaseWatch::note has called news since the last call.
  std::vector<LeaseNews> take_news();

  // Without a thread the caller calls act() when due() has come or message_fd() is readable. act() sends one request at most, which
  // ends early when `interrupt` is requested. Where the system refused the thread, act() now and then tries again to start it.
  [[nodiscard]] bool has_thread() const { return m_thread.joinable(); }
  void act(StopToken interrupt);
  [[nodiscard]] Instant due() const;     // far_future: there is a thread, or nothing to do
  [[nodiscard]] int message_fd() const;  // -1: there is a thread, or the watchdog awaits no message

  void stop();  // returns when the thread has ended; the caller may use the store again

  // After stop(), for a caller that goes on with the leases.
  [[nodiscard]] const std::vector<LeaseWatch>& leases() const { return m_leases; }
  std::unique_ptr<Listener> take_listener();  // nullptr: there is none
  // LeaseWatch::trouble, and that there is no thread.
  [[nodiscard]] std::string trouble(const LeaseWatch& lease) const;

 private:
  struct Due {
    std::size_t which;
    Instant deadline;
  };
  void start_thread();
  [[nodiscard]] std::string names() const;
  [[nodiscard]] std::string refusal() const;
  void watch();
  void advance();
  void give_up_or_plan(std::vector<Due>& due, Instant& rest_until);
  [[nodiscard]] std::vector<Due> next_batch(std::vector<Due> due) const;
  void renew(const std::vector<Due>& batch);
  void tell_move();
  void note(std::size_t which, const std::optional<LeaseEvent>& event);
  void log_detail(const std::string& line);
  void hear();
  void renew_all_at_once();
  [[nodiscard]] bool must_listen() const;
  void listen();
  Result<std::unique_ptr<Listener>> open_listener();
  void rest_until(Instant until);

  LockStore& m_store;
  const Clock& m_clock;
  const Log& m_log;
  const std::function<void(const LeaseBudget&)> m_on_moved;
  std::vector<LeaseWatch> m_leases;       // only the thread uses this member and those up to m_refused
  std::unique_ptr<Listener> m_from_wait;  // WatchdogOptions::listener, until it hears all that a holder must hear
  std::unique_ptr<Listener> m_listener;   // nullptr until it is subscribed to all messages
  std::size_t m_heard = 0;                // the number of the leases, the first ones, that it hears of
  Instant m_hear_at{};                    // when messages are read again
  Instant m_listen_at;
  Millis m_listen_pause{0};                    // the pause after the last failure to listen
  std::size_t m_most_together;                 // renewals that the store takes together
  std::size_t m_most_failing = 1;              // of those that failed the last time, in one request
  Instant m_retry_at{};                        // of the next such request
  Instant m_detail_at{};                       // when the next detail may be logged
  bool m_is_over = false;                      // each lease is
  StopToken m_interrupt = StopToken::never();  // interrupts the request in progress
  Instant m_wake_at{};  // when advance() has something to do, unless m_wake_fd is readable before
  int m_wake_fd = -1;
  std::string m_refused;            // why there is no thread; empty: there is one, or none is wanted
  Instant m_thread_at{far_future};  // when the next attempt to start the thread is due

  Mutex m_mutex;
  std::vector<LeaseNews> m_news GUARDED_BY(m_mutex);
  StopSource m_has_news;
  StopSource m_stop;
  std::thread m_thread;
};

}  // namespace rlock
