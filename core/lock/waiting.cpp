// SPDX-License-Identifier: Apache-2.0
#include "lock/waiting.h"

#include "lock/validity.h"

#include <algorithm>

namespace rlock {
namespace {

constexpr Millis shortest_pause{40};
constexpr Millis longest_pause{160};
constexpr Millis farewell{500};  // how long leaving may take when the server does not answer
constexpr int stale_grants = 3;

bool may_pass(Fault fault) { return fault == Fault::unreachable || fault == Fault::unfit; }

// One caller's way to the lock; lives as long as one wait_and_acquire.
class Approach {
 public:
  Approach(LockStore& store, const LockSpec& spec, const Owner& owner, const WaitPolicy& policy,
           const Clock& clock, Rng& rng, Stop stop)
      : m_store(store),
        m_spec(spec),
        m_owner(owner),
        m_policy(policy),
        m_clock(clock),
        m_rng(rng),
        m_stop(stop)
  {
  }

  Result<WaitOutcome> run(const OnBusy& on_busy)
  {
    for (;;) {
      auto outcome = attempt(on_busy);
      if (!outcome) {
        leave();
        return outcome.error();
      }
      if (*outcome) {
        if (!std::holds_alternative<Taken>(**outcome)) {
          leave();
        }
        return **std::move(outcome);
      }
      if (pause() == Wake::stopped) {
        leave();
        return WaitOutcome{Interrupted{}};
      }
    }
  }

 private:
  // One try. nullopt: not yet, try again after a pause.
  Result<std::optional<WaitOutcome>> attempt(const OnBusy& on_busy)
  {
    const Instant sent_at = m_clock.now();
    const auto tried = m_store.acquire(m_spec, m_owner, {.deadline = answer_by(sent_at), .stop = m_stop});
    if (!tried) {
      return failed(tried.error());
    }
    m_server_was_there = true;
    m_maybe_ours = std::holds_alternative<Granted>(*tried);
    if (const auto* granted = std::get_if<Granted>(&*tried)) {
      return taken(*granted, sent_at);
    }
    const Busy& busy = std::get<Busy>(*tried);
    on_busy(busy);
    if (time_is_over()) {
      return std::optional<WaitOutcome>{TimedOut{busy}};
    }
    return std::optional<WaitOutcome>{};
  }

  // A grant that took half the lease to arrive is asked for again: the same request only renews it.
  Result<std::optional<WaitOutcome>> taken(const Granted& granted, Instant sent_at)
  {
    if (valid_until(sent_at, m_spec.ttl) - m_clock.now() > m_spec.ttl / 2) {
      return std::optional<WaitOutcome>{Taken{.grant = granted, .sent_at = sent_at}};
    }
    if (++m_stale_grants < stale_grants) {
      return std::optional<WaitOutcome>{};
    }
    return Error{Fault::unfit, "the server needs longer to answer than half the lease lasts (give a "
                               "longer --ttl or --lease)"};
  }

  Result<std::optional<WaitOutcome>> failed(const Error& error)
  {
    m_maybe_ours = m_maybe_ours || error.fault == Fault::unreachable || error.fault == Fault::interrupted;
    if (error.fault == Fault::interrupted) {
      return std::optional<WaitOutcome>{Interrupted{}};
    }
    if (!may_pass(error.fault) || !m_server_was_there || time_is_over()) {
      return error;
    }
    m_store.forget();
    return std::optional<WaitOutcome>{};
  }

  // The first answer gets its full time whatever the patience; later ones no longer than that.
  [[nodiscard]] Instant answer_by(Instant now) const
  {
    const Instant full = now + m_policy.server_timeout;
    return m_server_was_there && m_policy.until ? std::clamp(*m_policy.until, now + shortest_pause, full)
                                                : full;
  }

  [[nodiscard]] bool time_is_over() const { return m_policy.until && m_clock.now() >= *m_policy.until; }

  Wake pause()
  {
    const auto spread = static_cast<std::uint64_t>((longest_pause - shortest_pause).count());
    const Instant again = m_clock.now() + shortest_pause + Millis{m_rng.next() % (spread + 1)};
    return m_clock.sleep_until(m_policy.until ? std::min(again, *m_policy.until) : again, m_stop);
  }

  void leave()
  {
    if (m_maybe_ours) {
      m_store.forget();
      const Limit limit{.deadline = m_clock.now() + std::min(farewell, m_policy.server_timeout),
                        .stop = Stop::never()};
      [[maybe_unused]] const auto released = m_store.release(m_spec, m_owner, limit);
    }
  }

  LockStore& m_store;
  const LockSpec& m_spec;
  const Owner& m_owner;
  const WaitPolicy& m_policy;
  const Clock& m_clock;
  Rng& m_rng;
  Stop m_stop;
  bool m_server_was_there = false;
  bool m_maybe_ours = false;  // a request was sent whose answer we do not have
  int m_stale_grants = 0;
};

}  // namespace

Result<WaitOutcome> wait_and_acquire(LockStore& store, const LockSpec& spec, const Owner& owner,
                                     const WaitPolicy& policy, const Clock& clock, Rng& rng, Stop stop,
                                     const OnBusy& on_busy)
{
  return Approach(store, spec, owner, policy, clock, rng, stop).run(on_busy);
}

}  // namespace rlock
