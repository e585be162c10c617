// SPDX-License-Identifier: Apache-2.0
#include "run/force.h"

#include <algorithm>
#include <variant>

namespace rlock {
namespace {

constexpr Millis first_pause{20};  // between two requests; doubles up to the longest
constexpr Millis longest_pause{200};
constexpr Millis shortest_silence_limit{5000};  // with a holder that has answered: it repeats its answer once a second
constexpr Millis remembered_after_grace{30'000};  // a holder that comes back later than that does not learn who asked

class ForcedRelease {
 public:
  ForcedRelease(LockStore& store, const ForceUnlockRequest& request, const Clock& clock, StopToken stop)
      : m_store(store), m_request(request), m_clock(clock), m_stop(stop)
  {
  }

  Result<ForceEnd> run()
  {
    if (m_request.grace <= Millis{0}) {
      return end_after(send(ForceStep::take));
    }
    const auto asked = send(ForceStep::ask);
    const auto* held = asked ? std::get_if<ForceHeld>(&*asked) : nullptr;
    if (held == nullptr) {
      return end_after(asked);
    }
    note_holder(*held);
    // A fixed lease without a listener, such as that of `acquire --lease`, has no process that could answer.
    const bool none_answers = held->listening == 0 && held->holder.info && !held->holder.info->automatic;
    return none_answers ? revoke(*held) : await_answer();
  }

 private:
  Result<ForceAnswer> send(ForceStep step)
  {
    m_sent_at = m_clock.now();
    return m_store.force_unlock()->force(step,
                                         {.name = m_request.name,
                                          .mode = m_request.mode,
                                          .owner = m_request.owner,
                                          .by = m_request.by,
                                          .stands_for = m_request.grace + remembered_after_grace},
                                         {.deadline = m_sent_at + m_request.server_timeout, .stop = m_stop});
  }

  void note_holder(const ForceHeld& held)
  {
    m_holder = held.holder;
    m_ends_at = held.lasts ? m_sent_at + *held.lasts : far_future;
    m_heard_at = m_sent_at;
  }

  // Until the holder has released, or has been silent for too long.
  Result<ForceEnd> await_answer()
  {
    Instant silent_since = m_sent_at;
    Millis silence_limit = m_request.grace;
    for (;;) {
      const auto found = ask_again(ForceStep::look);
      if (!found || !*found) {
        return found ? end_of_hold() : Result<ForceEnd>(found.error());
      }
      const ForceHeld& held = **found;
      if (held.silent_for) {
        silent_since = std::max(silent_since, m_sent_at - *held.silent_for);
        silence_limit = std::max(m_request.grace, shortest_silence_limit);
      }
      if (m_clock.now() >= silent_since + silence_limit) {
        return held.is_rlock ? revoke(held) : remove_from_silent();
      }
    }
  }

  Result<ForceEnd> revoke(const ForceHeld& held)
  {
    m_pause = first_pause;
    const auto revoked = send(ForceStep::revoke);
    if (revoked && !std::holds_alternative<ForceHeld>(*revoked)) {
      m_last = *revoked;
      return end_of_hold();
    }
    if (!revoked && !is_passing(revoked.error().code)) {
      return revoked.error();
    }
    if (m_request.revoked) {
      m_request.revoked(revoked ? std::get<ForceHeld>(*revoked) : held);
    }
    for (;;) {
      const auto found = ask_again(ForceStep::revoke);
      if (!found || !*found) {
        return found ? end_of_hold() : Result<ForceEnd>(found.error());
      }
    }
  }

  Result<ForceEnd> remove_from_silent()
  {
    const auto taken = send(ForceStep::take);
    m_last = taken ? *taken : m_last;
    return taken ? end_of_hold() : Result<ForceEnd>(taken.error());
  }

  // After a pause. nullopt: the owner no longer holds the lock. Asks a server that does not answer again for a while,
  // because in a quorum some servers may still have the lock when others no longer have it.
  Result<std::optional<ForceHeld>> ask_again(ForceStep step)
  {
    for (;;) {
      if (m_clock.sleep_until(m_clock.now() + m_pause, m_stop) == Wake::stopped) {
        return Error{ErrorCode::interrupted, "interrupted"};
      }
      m_pause = std::min(2 * m_pause, longest_pause);
      const auto found = send(step);
      if (!found) {
        const bool is_over = m_clock.now() >= m_heard_at + m_request.grace + m_request.server_timeout;
        if (is_over || !is_passing(found.error().code)) {
          return found.error();
        }
        m_store.forget();
        continue;
      }
      m_last = *found;
      const auto* held = std::get_if<ForceHeld>(&*found);
      if (held != nullptr) {
        note_holder(*held);
      }
      return held != nullptr ? std::optional{*held} : std::nullopt;
    }
  }

  // How the hold that the first answer found has ended.
  Result<ForceEnd> end_of_hold() const
  {
    if (const auto* broken = std::get_if<ForceBroken>(&m_last)) {
      return ForceEnd{Broken{.holder = broken->holder, .job_was_over = broken->job_was_over}};
    }
    return m_clock.now() >= m_ends_at ? ForceEnd{ForceExpired{*m_holder}} : ForceEnd{ReleasedByHolder{*m_holder}};
  }

  // After an answer with which the force-unlock is over.
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
  const ForceUnlockRequest& m_request;
  const Clock& m_clock;
  const StopToken m_stop;
  Instant m_sent_at{};             // when the last request was sent
  Instant m_heard_at{};            // when the last request was sent that was answered with "held"
  Instant m_ends_at = far_future;  // when the lease ends unless it is renewed
  Millis m_pause = first_pause;
  std::optional<Holder> m_holder;  // as last seen
  ForceAnswer m_last = ForceFree{};
};

}  // namespace

Result<ForceEnd> force_unlock(LockStore& store, const ForceUnlockRequest& request, const Clock& clock, StopToken stop)
{
  return ForcedRelease(store, request, clock, stop).run();
}

}  // namespace rlock
