// SPDX-License-Identifier: Apache-2.0
#include "run/force.h"

#include <algorithm>
#include <variant>

namespace rlock {
namespace {

constexpr Millis first_pause{20};  // between two looks; doubles up to the longest
constexpr Millis longest_pause{200};
constexpr Millis shortest_silence{
    5000};  // of a holder that has answered, which says once a second that it stops its job
constexpr Millis remembered_after_grace{30'000};  // so that a holder that comes back late learns by whom

class Forcing {
 public:
  Forcing(LockStore& store, const ForceUnlockRequest& order, const Clock& clock, StopToken stop)
      : m_store(store), m_order(order), m_clock(clock), m_stop(stop)
  {
  }

  Result<ForceEnd> run()
  {
    if (m_order.grace <= Millis{0}) {
      return end_after(send(ForceStep::take));
    }
    const auto asked = send(ForceStep::ask);
    const auto* held = asked ? std::get_if<ForceHeld>(&*asked) : nullptr;
    if (held == nullptr) {
      return end_after(asked);
    }
    saw(*held);
    // A fixed lease without a listener has no process that could answer, as that of `acquire --lease`.
    const bool none_answers = held->listening == 0 && held->holder.info && !held->holder.info->automatic;
    return none_answers ? revoke(*held) : await_answer();
  }

 private:
  Result<ForceAnswer> send(ForceStep step)
  {
    m_sent_at = m_clock.now();
    return m_store.force_unlock()->force(step,
                                         {.name = m_order.name,
                                          .mode = m_order.mode,
                                          .owner = m_order.owner,
                                          .by = m_order.by,
                                          .stands_for = m_order.grace + remembered_after_grace},
                                         {.deadline = m_sent_at + m_order.server_timeout, .stop = m_stop});
  }

  void saw(const ForceHeld& held)
  {
    m_holder = held.holder;
    m_ends_at = held.lasts ? m_sent_at + *held.lasts : far_future;
    m_heard_at = m_sent_at;
  }

  // Until the holder has let go, or has been silent for too long.
  Result<ForceEnd> await_answer()
  {
    Instant silent_since = m_sent_at;
    Millis patience = m_order.grace;
    for (;;) {
      const auto found = look(ForceStep::look);
      if (!found || !*found) {
        return found ? lasts_no_longer() : Result<ForceEnd>(found.error());
      }
      const ForceHeld& held = **found;
      if (held.silent_for) {
        silent_since = std::max(silent_since, m_sent_at - *held.silent_for);
        patience = std::max(m_order.grace, shortest_silence);
      }
      if (m_clock.now() >= silent_since + patience) {
        return held.is_rlock ? revoke(held) : take_from_silent();
      }
    }
  }

  Result<ForceEnd> revoke(const ForceHeld& held)
  {
    m_pause = first_pause;
    const auto revoked = send(ForceStep::revoke);
    if (revoked && !std::holds_alternative<ForceHeld>(*revoked)) {
      m_last = *revoked;
      return lasts_no_longer();
    }
    if (!revoked && !is_passing(revoked.error().fault)) {
      return revoked.error();
    }
    if (m_order.revoked) {
      m_order.revoked(revoked ? std::get<ForceHeld>(*revoked) : held);
    }
    for (;;) {
      const auto found = look(ForceStep::revoke);
      if (!found || !*found) {
        return found ? lasts_no_longer() : Result<ForceEnd>(found.error());
      }
    }
  }

  Result<ForceEnd> take_from_silent()
  {
    const auto taken = send(ForceStep::take);
    m_last = taken ? *taken : m_last;
    return taken ? lasts_no_longer() : Result<ForceEnd>(taken.error());
  }

  // After a pause; nullopt: the owner holds it no more. A server that does not answer is asked again for a while: of a
  // quorum, some may have the lock still when others have it no more.
  Result<std::optional<ForceHeld>> look(ForceStep step)
  {
    for (;;) {
      if (m_clock.sleep_until(m_clock.now() + m_pause, m_stop) == Wake::stopped) {
        return Error{ErrorCode::interrupted, "interrupted"};
      }
      m_pause = std::min(2 * m_pause, longest_pause);
      const auto found = send(step);
      if (!found) {
        const bool is_over = m_clock.now() >= m_heard_at + m_order.grace + m_order.server_timeout;
        if (is_over || !is_passing(found.error().fault)) {
          return found.error();
        }
        m_store.forget();
        continue;
      }
      m_last = *found;
      const auto* held = std::get_if<ForceHeld>(&*found);
      if (held != nullptr) {
        saw(*held);
      }
      return held != nullptr ? std::optional{*held} : std::nullopt;
    }
  }

  // What became of a lock that was held when it was asked for.
  Result<ForceEnd> lasts_no_longer() const
  {
    if (const auto* broken = std::get_if<ForceBroken>(&m_last)) {
      return ForceEnd{Broken{.holder = broken->holder, .job_was_over = broken->job_was_over}};
    }
    return m_clock.now() >= m_ends_at ? ForceEnd{ForceExpired{*m_holder}} : ForceEnd{ReleasedByHolder{*m_holder}};
  }

  // Of a step with which all is over.
  static Result<ForceEnd> end_after(const Result<ForceAnswer>& answer)
  {
    if (!answer) {
      return answer.error();
    }
    if (const auto* broken = std::get_if<ForceBroken>(&*answer)) {
      return ForceEnd{Broken{.holder = broken->holder, .job_was_over = broken->job_was_over}};
    }
    if (const auto* changed = std::get_if<ForceChanged>(&*answer)) {
      return ForceEnd{*changed};
    }
    return ForceEnd{ForceFree{}};
  }

  LockStore& m_store;
  const ForceUnlockRequest& m_order;
  const Clock& m_clock;
  const StopToken m_stop;
  Instant m_sent_at{};             // of the last request
  Instant m_heard_at{};            // when the last that was answered with "held" was sent
  Instant m_ends_at = far_future;  // when the lease ends unless it is renewed
  Millis m_pause = first_pause;
  std::optional<Holder> m_holder;  // as it was last seen
  ForceAnswer m_last = ForceFree{};
};

}  // namespace

Result<ForceEnd> force_unlock(LockStore& store, const ForceUnlockRequest& order, const Clock& clock, StopToken stop)
{
  return Forcing(store, order, clock, stop).run();
}

}  // namespace rlock
