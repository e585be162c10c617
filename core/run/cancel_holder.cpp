// SPDX-License-Identifier: Apache-2.0
#include "run/cancel_holder.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "base/text.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace rlock {
namespace {

constexpr Millis retry_after{1000};  // when the server does not answer

}  // namespace

CancelHolder::CancelHolder(LockStore& store, const LockSpec& spec, Millis server_timeout, const Clock& clock,
                           const Log& log)
    : m_store(store),
      m_spec(spec),
      m_server_timeout(server_timeout),
      m_clock(clock),
      m_log(log),
      m_lock(printable(spec.name.text()))
{
}

void CancelHolder::in_the_way(const Busy& busy)
{
  if (busy.holder && (!m_holder || busy.holder->owner.text() != m_holder->text())) {
    m_holder = busy.holder->owner;
    m_release.reset();
    m_begin_at = m_clock.now();
  }
}

Instant CancelHolder::due() const { return m_release ? m_release->due() : m_begin_at; }

bool CancelHolder::step(StopToken stop)
{
  if (!m_release) {
    return begin(stop);
  }
  const auto end = m_release->step(stop);
  if (!end) {
    return false;
  }
  m_release.reset();
  if (!*end) {
    failed(end->error());
    return false;
  }
  tell(**end);
  if (std::holds_alternative<StillStopping>(**end)) {
    return false;  // it knows of the request, and is not asked again
  }
  m_holder.reset();  // the next refusal may name it again
  return true;
}

// The lock may be held as another kind than this waiter asks for.
bool CancelHolder::begin(StopToken stop)
{
  m_begin_at = far_future;
  const auto state = m_store.inspect(m_spec.name, {.deadline = m_clock.now() + m_server_timeout, .stop = stop});
  if (!state) {
    failed(state.error());
    return false;
  }
  const auto holder = std::find_if(state->holders.begin(), state->holders.end(),
                                   [&](const Holder& each) { return each.owner.text() == m_holder->text(); });
  if (holder == state->holders.end()) {
    m_holder.reset();
    return true;
  }
  if (!state->proven) {
    give_up({ErrorCode::config, "nothing proves that it is a lock, its value may be data of another program"});
    return false;
  }
  ask(*holder, state->mode);
  return false;
}

void CancelHolder::ask(const Holder& holder, const Mode& mode)
{
  m_log.notice(m_lock + " is held by " + describe(holder) + ": asking it to stop", {.event = "cancelling"});
  const Holder self{.owner = Owner::of(""), .count = 1, .info = m_spec.who};
  m_release.emplace(
      m_store,
      ForceUnlockRequest{.name = m_spec.name,
                         .mode = mode,
                         .owner = holder.owner,
                         .by = describe(self),
                         .grace = default_force_grace,
                         .server_timeout = m_server_timeout,
                         .revoked = [this](const ForceHeld& held, bool listens) { tell_revoked(held, listens); },
                         .joins = true},
      m_clock);
}

void CancelHolder::tell_revoked(const ForceHeld& held, bool listens) const
{
  const std::string who = listens ? "the holder does not answer" : no_process_answers;
  const std::string end = held.lasts ? "it is no longer renewed and ends with its ttl, in " + show_roughly(*held.lasts)
                                     : "it has no ttl, so only rlock force-unlock --now ends it";
  m_log.notice(m_lock + ": " + who + "; " + end, {.event = "cancelling"});
}

void CancelHolder::tell(const ForceEnd& end) const
{
  const auto* broken = std::get_if<Broken>(&end);
  if (broken != nullptr && !broken->job_was_over) {
    m_log.notice(m_lock + " was taken from " + describe(broken->holder) + job_may_run, {.event = "cancelling"});
  } else if (const auto* stuck = std::get_if<StillStopping>(&end)) {
    m_log.notice(m_lock + ": " + describe(*stuck), {.event = "cancelling"});
  }
}

void CancelHolder::failed(const Error& error)
{
  if (is_passing(error.code)) {
    m_begin_at = m_clock.now() + retry_after;
  } else {
    give_up(error);
  }
}

void CancelHolder::give_up(const Error& error)
{
  if (error.code != ErrorCode::interrupted) {
    m_log.notice(m_lock + ": its holder cannot be asked to stop: " + error.text, {.event = "cancelling"});
  }
}

}  // namespace rlock
