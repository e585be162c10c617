// SPDX-License-Identifier: Apache-2.0
#include "lock/waiting.h"

#include "lock/barging.h"
#include "lock/validity.h"

#include <algorithm>
#include <array>
#include <utility>

#include <poll.h>

namespace rlock {
namespace {

constexpr Millis longest_rest{10'000};
constexpr std::uint64_t vanguard = 4;   // how many watch the ttl of the lock itself
constexpr Millis step_back{300};        // between one of these and the next
constexpr Millis farewell{500};         // how long leaving may take when the server does not answer
constexpr Millis least_answer_time{40};
constexpr Millis first_pause{50};       // after a failure; doubles up to the longest
constexpr Millis longest_pause{1000};
constexpr Millis silent_pause{100};     // between looks at a holder that tells nobody when it is done
constexpr Millis deaf_pause{200};       // between tries where listening is not possible
constexpr std::chrono::microseconds out_of_the_way{100};  // of the job that has just been let go
constexpr int stale_grants = 3;

bool may_pass(Fault fault) { return fault == Fault::unreachable || fault == Fault::unfit; }

Millis upto(Rng& rng, Millis most)
{
  return Millis{static_cast<std::int64_t>(rng.next() % (static_cast<std::uint64_t>(most.count()) + 1))};
}

// One caller's way to the lock; lives as long as one wait_and_acquire.
class Approach {
 public:
  Approach(LockStore& store, const LockSpec& spec, const Owner& owner, const WaitPolicy& policy,
           const Clock& clock, Rng& rng, Stop stop, Onlooker& onlooker)
      : m_store(store),
        m_spec(spec),
        m_owner(owner),
        m_policy(policy),
        m_clock(clock),
        m_rng(rng),
        m_stop(stop),
        m_onlooker(onlooker)
  {
  }

  Result<WaitOutcome> run()
  {
    for (;;) {
      auto outcome = attempt();
      if (!outcome || *outcome) {
        if (!outcome || !std::holds_alternative<Taken>(**outcome)) {
          leave();
        }
        return outcome ? Result(**std::move(outcome)) : Result<WaitOutcome>(outcome.error());
      }
      if (may_rest() && rest() == Wake::stopped) {
        leave();
        return WaitOutcome{Interrupted{}};
      }
    }
  }

 private:
  using Step = Result<std::optional<WaitOutcome>>;  // nullopt: not yet

  Step attempt()
  {
    LockSpec asked = m_spec;
    asked.who.since_ms = wall_clock_ms();
    const Manner manner{.queues = m_policy.patient, .ticket = m_ticket};
    const Instant sent_at = m_clock.now();
    const auto tried =
        m_store.acquire(asked, m_owner, manner, {.deadline = answer_by(sent_at), .stop = m_stop});
    if (!tried) {
      return failed(tried.error());
    }
    m_server_was_there = true;
    m_failures = 0;
    if (const auto* granted = std::get_if<Granted>(&*tried)) {
      m_to_leave = true;
      return taken(*granted, sent_at);
    }
    if (const auto* done = std::get_if<AlreadyDone>(&*tried)) {
      m_to_leave = false;
      return std::optional<WaitOutcome>{*done};
    }
    return refused(std::get<Busy>(*tried), sent_at);
  }

  // A grant that took half the lease to arrive is asked for again: the same request only renews it.
  Step taken(const Granted& granted, Instant sent_at)
  {
    if (valid_until(sent_at, m_spec.ttl) - m_clock.now() > m_spec.ttl / 2) {
      return std::optional<WaitOutcome>{
          Taken{.grant = granted, .sent_at = sent_at, .listener = std::move(m_listener)}};
    }
    if (++m_stale_grants < stale_grants) {
      m_look_at = m_clock.now();
      return std::optional<WaitOutcome>{};
    }
    return Error{Fault::unfit, "the server needs longer to answer than half the lease lasts (give a "
                               "longer --ttl or --lease)"};
  }

  Step refused(const Busy& busy, Instant sent_at)
  {
    m_to_leave = m_policy.patient;
    m_ticket = busy.ticket;
    m_must_hear_releases = busy.place == 0 && busy.holder && !busy.holder->info;
    m_look_at = sent_at + rest_after(busy, m_rng);
    if (busy.place == 0) {
      m_prepare_at = sent_at + out_of_the_way;
    }
    if (m_barging.insists(sent_at, m_must_hear_releases, std::exchange(m_was_told, false))) {
      m_look_at = sent_at + Millis{1};
    }
    m_onlooker.refused(busy);
    if (!m_policy.patient || time_is_over()) {
      return std::optional<WaitOutcome>{TimedOut{busy}};
    }
    return std::optional<WaitOutcome>{};
  }

  Step failed(const Error& error)
  {
    m_to_leave = m_to_leave || error.fault == Fault::unreachable || error.fault == Fault::interrupted;
    if (error.fault == Fault::interrupted) {
      return std::optional<WaitOutcome>{Interrupted{}};
    }
    const bool cut_while_resting = m_server_was_there && m_failures == 0;
    if (!may_pass(error.fault) || !m_server_was_there || !m_policy.patient ||
        (time_is_over() && !cut_while_resting)) {
      return error;
    }
    m_store.forget();
    m_listener.reset();
    m_look_at = cut_while_resting ? m_clock.now() : m_clock.now() + pause();
    ++m_failures;
    return std::optional<WaitOutcome>{};
  }

  // Longer with each failure in a row, and never the same for two who failed together.
  Millis pause()
  {
    const Millis most = std::min(first_pause * (1 << std::min(m_failures, 5)), longest_pause);
    return most / 2 + upto(m_rng, most / 2);
  }

  // False: ask again first, because something may have been said before we listened.
  bool may_rest()
  {
    if (m_failures > 0 || m_clock.now() >= m_look_at) {
      return true;
    }
    const Limit limit{.deadline = answer_by(m_clock.now()), .stop = m_stop};
    if (!m_listener) {
      auto listener = m_store.listen(m_spec, m_owner, limit);
      if (!listener) {
        m_look_at = std::min(m_look_at, m_clock.now() + deaf_pause);
        return true;
      }
      m_listener = *std::move(listener);
      m_hears_releases = false;
      const auto queued = m_store.is_queued(m_spec, m_owner, limit);
      if (!queued || !*queued) {
        return false;
      }
    }
    if (m_must_hear_releases && !m_hears_releases) {
      m_hears_releases = true;
      if (!m_listener->hear_releases(limit)) {
        m_listener.reset();
      }
      return false;
    }
    return true;
  }

  // Until it is time to look, something was said, or time is over.
  Wake rest()
  {
    if (m_listener) {
      listen();  // what came along with the confirmation is not seen by poll
    }
    for (;;) {
      const Instant now = m_clock.now();
      const Instant end = m_policy.until ? std::min(m_look_at, *m_policy.until) : m_look_at;
      if (now >= m_onlooker.due()) {
        m_onlooker.tick();
      }
      if (now >= m_prepare_at) {
        m_prepare_at = far_future;
        m_onlooker.next_in_line();
      }
      if (now >= end) {
        return Wake::due;  // who asks then looks at the stop first
      }
      std::array<pollfd, 2> waits{
          pollfd{.fd = m_stop.fd(), .events = POLLIN, .revents = 0},
          pollfd{.fd = m_listener ? m_listener->fd() : -1, .events = POLLIN, .revents = 0}};
      poll_until(waits, now, std::min({end, m_onlooker.due(), m_prepare_at}));
      if (waits[0].revents != 0) {
        return Wake::stopped;
      }
      if (waits[1].revents != 0) {
        listen();
      }
    }
  }

  void listen()
  {
    const auto hint = m_listener->heard(m_clock);
    if (!hint) {
      m_listener.reset();  // whatever cut us off may have touched the queue as well
      m_look_at = m_clock.now();
      return;
    }
    if (hint->look_in) {
      m_was_told = true;
      m_look_at = std::min(m_look_at, m_clock.now() + *hint->look_in);
    } else if (hint->next) {
      m_prepare_at = m_clock.now() + out_of_the_way;
    }
  }

  // The first answer gets its full time whatever the patience; later ones no longer than that.
  [[nodiscard]] Instant answer_by(Instant now) const
  {
    const Instant full = now + m_policy.server_timeout;
    const bool bounded = m_server_was_there && m_policy.until;
    return bounded ? std::clamp(*m_policy.until, std::min(now + least_answer_time, full), full) : full;
  }

  [[nodiscard]] bool time_is_over() const { return m_policy.until && m_clock.now() >= *m_policy.until; }

  void leave()
  {
    if (m_to_leave) {
      const Limit limit{.deadline = m_clock.now() + std::min(farewell, m_policy.server_timeout),
                        .stop = Stop::never()};
      [[maybe_unused]] const auto released = m_store.release(m_spec, m_owner, {}, limit);
    }
  }

  LockStore& m_store;
  const LockSpec& m_spec;
  const Owner& m_owner;
  const WaitPolicy& m_policy;
  const Clock& m_clock;
  Rng& m_rng;
  Stop m_stop;
  Onlooker& m_onlooker;

  std::unique_ptr<Listener> m_listener;
  Instant m_look_at{};
  std::uint64_t m_ticket = 0;
  Instant m_prepare_at = far_future;  // for our turn; set when we are first in line
  bool m_must_hear_releases = false;  // we are first, and the holder is foreign: it speaks to nobody in person
  bool m_hears_releases = false;
  bool m_was_told = false;            // to look, since we last did
  Barging m_barging;
  bool m_server_was_there = false;
  bool m_to_leave = false;  // we are in line, or a request was sent whose answer we do not have
  int m_failures = 0;
  int m_stale_grants = 0;
};

}  // namespace

Millis rest_after(const Busy& busy, Rng& rng)
{
  if (busy.again_in) {
    return std::min(longest_rest, *busy.again_in);
  }
  if (busy.silent && busy.place == 0) {
    return silent_pause / 2 + upto(rng, silent_pause / 2);
  }
  if (!busy.ttl || busy.place >= vanguard) {
    return longest_rest;
  }
  const Millis turn = step_back * static_cast<std::int64_t>(busy.place);
  return std::min(longest_rest, *busy.ttl + turn + Millis{1} + upto(rng, Millis{2}));
}

Result<WaitOutcome> wait_and_acquire(LockStore& store, const LockSpec& spec, const Owner& owner,
                                     const WaitPolicy& policy, const Clock& clock, Rng& rng, Stop stop,
                                     Onlooker& onlooker)
{
  return Approach(store, spec, owner, policy, clock, rng, stop, onlooker).run();
}

}  // namespace rlock
