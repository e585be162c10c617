// SPDX-License-Identifier: Apache-2.0
// What the watchdog of a job knows of one of its leases: when it must be renewed, and what an answer or a failure means for it. No
// network and no threads.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "lease/renewal.h"
#include "lock/requests.h"

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

// The text of an error without its advice, because another server does not help a lock on this server.
std::string reason_of(const Error& error);

struct LeaseWatchOptions {
  LockSpec spec;
  Owner owner;
  bool renews;  // false: a fixed lease, which is only checked
  LeaseBudget lease;
  bool is_claim = false;                            // GrantedLock::is_claim: renewed at once
  Millis kill_after;                                // LeaseBudget::signal_at: then the lock is given up
  std::string_view consequence = "it is given up";  // of failed renewals, for the log: "the job will be stopped"
};

class LeaseWatch {
 public:
  // `clock` and `log` must outlive the watch.
  LeaseWatch(LeaseWatchOptions options, const Clock& clock, const Log& log);

  [[nodiscard]] const LockSpec& spec() const { return m_options.spec; }
  [[nodiscard]] const Owner& owner() const { return m_options.owner; }
  [[nodiscard]] const LeaseBudget& lease() const { return m_state.lease; }
  [[nodiscard]] bool is_claim() const { return m_options.is_claim; }
  [[nodiscard]] const RenewalPolicy& policy() const { return m_policy; }
  [[nodiscard]] bool is_failing() const { return m_state.last_try != m_state.last_kept; }
  // Of those that are due together, the least comes first.
  [[nodiscard]] auto rank() const
  {
    return std::tuple(is_failing(), is_failing() || !is_urgent(),
                      is_failing() ? m_state.last_try : m_state.lease.valid_until());
  }
  [[nodiscard]] bool is_over() const { return m_is_over; }  // the lease needs nothing more
  // Why renewals fail and for how long, in the words of Unconfirmed; empty: they succeed.
  [[nodiscard]] std::string trouble() const;

  [[nodiscard]] Step step(Instant now) const;
  void renew_at_once() { m_renew_at_once = true; }
  [[nodiscard]] bool is_urgent() const { return m_renew_at_once; }

  // The renewal that is sent at `sent_at`.
  [[nodiscard]] RenewalCall renewal(Instant sent_at) const;
  std::optional<LeaseEvent> answered(Renewal renewal, Instant sent_at);
  void failed(const Error& error, Instant sent_at, Instant deadline);
  bool take_move() { return std::exchange(m_has_moved, false); }  // whether there is a new lease since the last call

  // After Lost and Unconfirmed the lease is over. After ReleaseRequested it is renewed, and each renewal says that the job is being
  // stopped, until the server refuses that. True: the event is news, the first one or the end of the lease while the job is being
  // stopped.
  bool note(const LeaseEvent& event);

 private:
  void log_failure(const Error& error, Instant failing_since);
  void log_detail(const std::string& line);
  void note_success(Instant sent_at, const std::optional<LeaseTerm>& lease, const std::optional<ClockSample>& sample);
  void plan_renewals(Instant sent_at);
  void compare_clocks(const ClockSample& sample, Millis length);

  LeaseWatchOptions m_options;
  RenewalPolicy m_policy;
  const Clock* m_clock;
  const Log* m_log;
  RenewalState m_state;
  std::string m_trouble;                     // why renewals fail
  std::optional<ClockSample> m_last_sample;  // the sample of the last successful renewal
  Millis m_reduction{0};                     // lease_reduction(), because the server's clock runs ahead
  std::optional<Instant> m_failing_since;    // when the first of the failed renewals in a row was sent
  bool m_failure_logged = false;             // a notice has told the failure
  Instant m_detail_at{};                     // when the next detail may be logged
  bool m_is_revoked = false;                 // the server refuses renewals
  bool m_renew_at_once = false;
  bool m_is_stopping = false;  // the job, because the lock was requested
  bool m_has_moved = false;
  bool m_is_over = false;
};

}  // namespace rlock
