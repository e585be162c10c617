// SPDX-License-Identifier: Apache-2.0
#include "run/force.h"

#include <algorithm>
#include <array>
#include <list>
#include <utility>
#include <variant>
#include "base/defaults.h"
#include "base/duration.h"
#include "base/text.h"

namespace rlock {
namespace {

constexpr Millis first_pause{20};  // between two requests; doubles up to the longest
constexpr Millis longest_pause{200};
constexpr Millis shortest_silence_limit{5000};  // with a holder that has answered: it repeats its answer once a second
constexpr Millis remembered_after_grace{30'000};  // a holder that comes back later does not learn the requester

}  // namespace

ForcedRelease::ForcedRelease(LockStore& store, ForceUnlockRequest request, const Clock& clock)
    : m_store(store), m_request(std::move(request)), m_clock(clock), m_due(clock.now()), m_pause(first_pause)
{
}

ForcedRelease::Step ForcedRelease::step(StopToken stop)
{
  switch (m_next) {
    case Next::begin: return begin(stop);
    case Next::look: return look(stop);
    case Next::revoke: return revoke(stop);
    case Next::take: return take(stop);
    case Next::repeat_revoke: break;
  }
  const auto found = ask_again(ForceStep::revoke, stop);
  return found.end;
}

ForcedRelease::Step ForcedRelease::begin(StopToken stop)
{
  if (m_request.grace <= Millis{0}) {
    return end_after(send(ForceStep::take, stop));
  }
  const auto asked = send(m_request.joins ? ForceStep::join : ForceStep::ask, stop);
  const auto* held = asked ? std::get_if<ForceHeld>(&*asked) : nullptr;
  if (held == nullptr) {
    return end_after(asked);
  }
  note_holder(*held);
  m_silent_since = m_sent_at;
  m_silence_limit = m_request.grace;
  // A fixed lease without a listener, such as that of `acquire --lease`, has no process that could answer.
  m_listens = held->listening > 0 || !held->holder.info || held->holder.info->automatic;
  return !m_listens ? go_on(Next::revoke) : pause(Next::look);
}

// Looks until the holder has released, or has been silent for too long.
ForcedRelease::Step ForcedRelease::look(StopToken stop)
{
  const Found found = ask_again(ForceStep::look, stop);
  if (!found.held) {
    return found.end;
  }
  if (found.held->silent_for) {
    m_silent_since = std::max(m_silent_since, m_sent_at - *found.held->silent_for);
    m_silence_limit = std::max(m_request.grace, shortest_silence_limit);
    if (auto end = end_if_job_survives(*found.held)) {
      return end;
    }
  }
  if (m_clock.now() < m_silent_since + m_silence_limit) {
    return std::nullopt;
  }
  m_last_held = found.held;
  return go_on(found.held->is_rlock ? Next::revoke : Next::take);
}

// KILL follows the stop signal after --kill-after; a job that lives longer by the limit of silence cannot die.
ForcedRelease::Step ForcedRelease::end_if_job_survives(const ForceHeld& held)
{
  m_stopping_since = m_stopping_since.value_or(m_sent_at);
  const auto& info = held.holder.info;
  const Millis waited = std::chrono::floor<Millis>(m_sent_at - *m_stopping_since);
  if (waited < (info ? info->kill_after : default_kill_after) + m_silence_limit) {
    return std::nullopt;
  }
  return ForceEnd{StillStopping{.holder = held.holder, .waited = waited}};
}

ForcedRelease::Step ForcedRelease::revoke(StopToken stop)
{
  m_pause = first_pause;
  const auto revoked = send(ForceStep::revoke, stop);
  if (revoked && !std::holds_alternative<ForceHeld>(*revoked)) {
    m_last = *revoked;
    return end_of_hold(stop);
  }
  if (!revoked && !is_passing(revoked.error().code)) {
    return revoked.error();
  }
  if (m_request.revoked) {
    m_request.revoked(revoked ? std::get<ForceHeld>(*revoked) : *m_last_held, m_listens);
  }
  return pause(Next::repeat_revoke);
}

// Takes the lock from a silent foreign holder.
ForcedRelease::Step ForcedRelease::take(StopToken stop)
{
  const auto taken = send(ForceStep::take, stop);
  m_last = taken ? *taken : m_last;
  return taken ? end_of_hold(stop) : Result<ForceEnd>(taken.error());
}

ForcedRelease::Step ForcedRelease::go_on(Next next)
{
  m_next = next;
  m_due = m_clock.now();
  return std::nullopt;
}

ForcedRelease::Step ForcedRelease::pause(Next next)
{
  m_next = next;
  m_due = m_clock.now() + m_pause;
  m_pause = std::min(2 * m_pause, longest_pause);
  return std::nullopt;
}

Result<ForceAnswer> ForcedRelease::send(ForceStep step, StopToken stop)
{
  m_sent_at = m_clock.now();
  return m_store.force(step,
                       {.name = m_request.name,
                        .kind = m_request.kind,
                        .owner = m_request.owner,
                        .by = m_request.by,
                        .stands_for = m_request.grace + remembered_after_grace},
                       {.deadline = m_sent_at + m_request.server_timeout, .stop = stop});
}

void ForcedRelease::note_holder(const ForceHeld& held)
{
  m_last_held = held;
  m_ends_at = held.lasts ? m_sent_at + *held.lasts : far_future;
  m_heard_at = m_sent_at;
}

// Asks a server that does not answer again for a while, because in a quorum some servers may still have the lock when
// others no longer have it.
ForcedRelease::Found ForcedRelease::ask_again(ForceStep step, StopToken stop)
{
  const auto found = send(step, stop);
  pause(m_next);
  if (!found) {
    const bool is_over = m_clock.now() >= m_heard_at + m_request.grace + m_request.server_timeout;
    if (is_over || !is_passing(found.error().code)) {
      return {.held = std::nullopt, .end = found.error()};
    }
    m_store.drop_connection();
    return {};
  }
  m_last = *found;
  const auto* held = std::get_if<ForceHeld>(&*found);
  if (held == nullptr) {
    return {.held = std::nullopt, .end = end_of_hold(stop)};
  }
  note_holder(*held);
  return {.held = *held, .end = std::nullopt};
}

// What the event log tells of the end of the hold: nullopt in it: nothing. An Error: it cannot be read. An earlier hold of the owner may
// have ended before the last grant, and the result of a run may come after the end.
Result<std::optional<EventKind>> ForcedRelease::logged_end(StopToken stop) const
{
  const std::array<EventLogQuery, 1> query{EventLogQuery{.name = m_request.name, .after = {}}};
  ASSIGN_OR_RETURN(const auto logs,
                   m_store.read_logs(query, {.deadline = m_clock.now() + m_request.server_timeout, .stop = stop}));
  const auto& log = logs.front();
  const std::string& owner = m_last_held->holder.owner.text();
  const auto last_grant =
      std::find_if(log.rbegin(), log.rend(), [&](const EventLogEntry& entry) { return entry.taker == owner; });
  const auto end = std::find_if(last_grant.base(), log.end(),
                                [&](const EventLogEntry& entry) { return entry.ends() && entry.owner == owner; });
  return end == log.end() ? std::nullopt : end->kind;
}

// How the hold that the first answer found has ended. Another force-unlock may have deleted it meanwhile, or an earlier copy of this
// one's last request.
Result<ForceEnd> ForcedRelease::end_of_hold(StopToken stop) const
{
  if (const auto* broken = std::get_if<ForceBroken>(&m_last)) {
    return ForceEnd{Broken{.holder = broken->holder, .job_was_over = broken->job_was_over}};
  }
  const Holder& holder = m_last_held->holder;
  const auto logged = logged_end(stop);
  if (logged && *logged == EventKind::forced) {
    return ForceEnd{Broken{.holder = holder}};
  }
  const bool is_ttl_a_bound = logged && m_store.traits().ends_holds_with_clients;
  const bool has_expired = is_ttl_a_bound ? !*logged : m_clock.now() >= m_ends_at;
  return has_expired ? ForceEnd{ForceExpired{holder, m_next == Next::repeat_revoke}}
                     : ForceEnd{ReleasedByHolder{holder}};
}

// The end of the force-unlock after its last answer.
Result<ForceEnd> ForcedRelease::end_after(const Result<ForceAnswer>& answer)
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

// The pid in the owner id is that of the process that took the lock.
bool is_run(const Holder& holder)
{
  return holder.info && holder.owner.text().ends_with(":" + std::to_string(holder.info->pid));
}

std::string describe(const StillStopping& end)
{
  const std::string who = describe(end.holder), waited = show_roughly(end.waited);
  return is_run(end.holder) ? who + ", has been stopping its job for " + waited +
                                  ", but the job does not end: look there for a process in uninterruptible sleep "
                                  "(state D) or of another user"
                            : who + ", was asked to stop " + waited +
                                  " ago and has not ended: it may be cleaning up, and rlock kills no script without "
                                  "acquire --export";
}

Result<Done> force_unlock_all(LockStore& store, std::span<const ForceUnlockRequest> requests, const Clock& clock,
                              StopToken stop, const OnForceEnd& ended)
{
  std::list<ForcedRelease> releases;
  for (const ForceUnlockRequest& request : requests) {
    releases.emplace_back(store, request, clock);
  }
  while (!releases.empty()) {
    const auto next = std::min_element(releases.begin(), releases.end(),
                                       [](const auto& one, const auto& other) { return one.due() < other.due(); });
    if (clock.now() < next->due() && clock.sleep_until(next->due(), stop) == Wake::stopped) {
      return Error{ErrorCode::interrupted, "interrupted"};
    }
    const auto end = next->step(stop);
    if (!end) {
      continue;
    }
    if (!*end) {
      return end->error();
    }
    ended(**end);
    releases.erase(next);
  }
  return Done{};
}

Result<ForceEnd> force_unlock(LockStore& store, const ForceUnlockRequest& request, const Clock& clock, StopToken stop)
{
  ForceEnd end = ForceFree{};
  const auto done = force_unlock_all(store, {&request, 1}, clock, stop, [&](const ForceEnd& only) { end = only; });
  return done ? Result(end) : done.error();
}

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
  if (const HolderInfo* const freeze = freeze_of(*holder)) {
    m_log.notice(m_lock + " is " + freeze_text(*freeze, state->ttl, wall_clock_ms()) + "; the run waits for its end",
                 {.event = "frozen"});
    return false;
  }
  ask(*holder, as_inspected(state->kind));
  return false;
}

void CancelHolder::ask(const Holder& holder, const LockKind& kind)
{
  m_log.notice(m_lock + " is held by " + describe(holder) + ": asking it to stop", {.event = "cancelling"});
  const Holder self{.owner = Owner::of(""), .count = 1, .info = m_spec.who};
  m_release.emplace(
      m_store,
      ForceUnlockRequest{.name = m_spec.name,
                         .kind = kind,
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
