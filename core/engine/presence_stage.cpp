// SPDX-License-Identifier: Apache-2.0
#include "engine/presence_stage.h"

#include <algorithm>
#include <iterator>
#include "base/text.h"
#include "engine/script_reply.h"
#include "lock/calls.h"
#include "lock/holder.h"

namespace rlock::record {
namespace {

// How long the place in the queue, and the claim, of a waiter that died can last. A holder's presence has the ttl of the lock.
constexpr Millis longest_waiting_lease = default_ttl;

// A proof that is older than this part of the lease is renewed by an acquire.
constexpr int proofs_per_lease = 6;

// An owner has few presences, unless many processes renew its hold with its token: those that end first are forgotten.
constexpr std::size_t most_presences = 8;

std::int64_t longest_lease(const std::vector<BoundPresence>& presences)
{
  std::int64_t longest = 0;
  for (const BoundPresence& each : presences) {
    longest = std::max(longest, each.lease_ms);
  }
  return longest;
}

std::vector<PresenceId> unkept_in(const Bindings& bindings)
{
  std::vector<PresenceId> ids;
  for (const auto& [owner, presences] : bindings) {
    for (const BoundPresence& each : presences) {
      if (each.keeping == Keeping::unkept) {
        ids.push_back(each.id);
      }
    }
  }
  return ids;
}

// False: it is bound already, with this lease.
bool add_binding(std::vector<BoundPresence>& presences, const Presence& presence, Keeping keeping)
{
  const std::int64_t lease_ms = presence.lease.length.count();
  const auto known = std::ranges::find(presences, presence.id, &BoundPresence::id);
  if (known != presences.end()) {
    return std::exchange(known->lease_ms, std::max(known->lease_ms, lease_ms)) < lease_ms;
  }
  if (presences.size() >= most_presences) {
    presences.erase(std::ranges::min_element(presences, {}, &BoundPresence::lease_ms));
  }
  presences.push_back({.id = presence.id, .lease_ms = lease_ms, .keeping = keeping});
  return true;
}

// When the lease ends by the scripts' time. A part of a millisecond is lost, for which holders have an allowance.
std::int64_t shown_end_ms(const LeaseTerm& lease, const Snapshot& read)
{
  const auto since_read = std::chrono::duration_cast<std::chrono::microseconds>(lease.from - read.time_at);
  return (read.time_us + since_read.count()) / 1000 + lease.length.count();
}

}  // namespace

PresenceStage::Asked PresenceStage::asked_of(const Work& work)
{
  if (work.request == nullptr) {
    return {};
  }
  Asked asked{.owner = work.owner()};
  if (const auto* acquire = work.as<calls::Acquire>()) {
    const auto info = decode_holder(acquire->info);
    asked.verb = Asked::Verb::acquire;
    asked.hold = acquire->hold_id;
    asked.ttl = acquire->ttl;
    asked.is_automatic = info && info->automatic;
  } else if (const auto* renewal = work.as<calls::Renew>(); renewal != nullptr && renewal->ttl > Millis{0}) {
    asked.verb = Asked::Verb::renew;
    asked.hold = renewal->hold_id.empty() ? asked.owner : renewal->hold_id;
    asked.ttl = renewal->ttl;
  } else if (const auto* release = work.as<calls::Release>()) {
    asked.verb = Asked::Verb::release;
    asked.hold = release->hold_id;
  } else if (const auto* force = work.as<calls::Force>(); force != nullptr && force->step == ForceStep::revoke) {
    asked.verb = Asked::Verb::revoke;
  }
  return asked;
}

std::optional<LeaseTerm> PresenceStage::lease_of(const std::string& owner) const
{
  const Own* const own = find(owner);
  return own != nullptr ? std::optional(own->presence.lease) : std::nullopt;
}

bool PresenceStage::Own::serves(const std::string& owner, Use use) const
{
  return std::ranges::any_of(users, [&](const auto& each) { return each.first.owner == owner && each.second == use; });
}

const PresenceStage::Own* PresenceStage::find(const std::string& owner) const
{
  for (const Use use : {Use::holds, Use::waits}) {
    const auto own = std::ranges::find_if(m_own, [&](const Own& each) { return each.serves(owner, use); });
    if (own != m_own.end()) {
      return &*own;
    }
  }
  return nullptr;
}

PresenceStage::Own* PresenceStage::find(const std::string& owner)
{
  const Own* const own = std::as_const(*this).find(owner);
  return own == nullptr ? nullptr : &m_own[static_cast<std::size_t>(own - m_own.data())];
}

// An owner holds all its locks with one presence; a waiter that gets the lock may need another lease. No two owners share a presence:
// it is removed with the release of its owner, so that a commit that arrives later changes nothing.
PresenceStage::Own* PresenceStage::fitting(const Wanted& wanted)
{
  Own* const own = find(m_asked.owner);
  const bool fits =
      own != nullptr && (wanted.use == Use::waits || own->serves(m_asked.owner, Use::holds) ||
                         (own->made_for.lease == wanted.lease && own->made_for.keeping == wanted.keeping));
  return fits ? own : nullptr;
}

// False: the presence is gone.
Result<bool> PresenceStage::prove(Own& own, const CallLimits& limit)
{
  const PresenceId id = own.presence.id;
  ASSIGN_OR_RETURN(const auto proof, m_presences.prove(id, limit));
  if (const auto* lease = std::get_if<LeaseTerm>(&proof)) {
    own.presence.lease = *lease;
    return true;
  }
  forget({&id, 1});
  return false;
}

void PresenceStage::forget(std::span<const PresenceId> gone)
{
  std::erase_if(m_own, [&](const Own& own) { return std::ranges::find(gone, own.presence.id) != gone.end(); });
}

Result<Done> PresenceStage::begin(const Work& work, const CallLimits& limit)
{
  m_asked = asked_of(work);
  Own* const own = m_asked.verb == Asked::Verb::renew ? find(m_asked.owner) : nullptr;
  if (own != nullptr) {
    RETURN_IF_ERROR(prove(*own, limit));
  }
  return Done{};
}

void PresenceStage::fit_time(State& state)
{
  std::int64_t& time_us = state.read.time_us;
  if (const auto ahead = m_ahead.find(state.lock.text()); ahead != m_ahead.end()) {
    time_us += ahead->second;
  }
  if (state.record.time_us > time_us) {
    m_ahead[state.lock.text()] += state.record.time_us - time_us;
    time_us = state.record.time_us;
  }
}

Result<Done> PresenceStage::after_read(std::span<State> states, const CallLimits& limit)
{
  std::vector<PresenceId> ids;
  for (State& state : states) {
    fit_time(state);
    std::ranges::move(presences_to_ask(state.record, state.lock), std::back_inserter(ids));
  }
  std::erase_if(ids, [this](const PresenceId& id) {  // what is proven lives
    return std::ranges::any_of(m_own, [&](const Own& own) {
      return own.presence.id == id && LeaseBudget(own.presence.lease).valid_until() > m_clock.now();
    });
  });
  if (ids.empty()) {
    return Done{};
  }
  ASSIGN_OR_RETURN(const auto gone, m_presences.gone(ids, limit));
  for (State& state : states) {
    state.gone = gone;
  }
  return Done{};
}

bool PresenceStage::is_revocation_over(const Round& round) const
{
  const auto revoked = m_revocations.find({round.work.lock.text(), m_asked.owner});
  if (m_asked.verb != Asked::Verb::revoke || revoked == m_revocations.end()) {
    return false;
  }
  const auto& [fence, known_at, lease] = revoked->second;
  return revoked_hold(round.before.keys, round.work.lock, m_asked.owner) == fence &&
         m_clock.now() >= known_at + lease + drift_allowed(lease);
}

Result<bool> PresenceStage::before_script(Round& round, const CallLimits&)
{
  m_revoked.reset();
  m_leaving.clear();
  m_unbound.clear();
  round.before.time_us = round.time_us;
  round.ended = end_gone(round.before, round.work.lock, round.state.gone, round.time_us);
  if (is_revocation_over(round)) {
    end_owner(round.before, round.work.lock, m_asked.owner);
    round.before.bindings.erase(m_asked.owner);
    round.must_write = true;
  }
  return true;
}

Result<PresenceStage::Proven> PresenceStage::make(const Wanted& wanted, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(auto made, m_presences.make(wanted.lease, wanted.keeping, limit));
  m_own.push_back({.presence = std::move(made), .made_for = wanted, .users = {}});
  return Proven{.own = &m_own.back(), .since_read = true};
}

// With a proof that is young enough.
Result<PresenceStage::Proven> PresenceStage::own_for(const Wanted& wanted, const LockRecord& after,
                                                     const CallLimits& limit)
{
  Own* const own = fitting(wanted);
  if (own == nullptr) {
    return make(wanted, limit);
  }
  const LeaseTerm& lease = own->presence.lease;
  const bool is_fresh =
      own->made_for.keeping == Keeping::kept && m_clock.now() < lease.from + lease.length / proofs_per_lease;
  if (is_fresh || m_asked.verb == Asked::Verb::renew) {  // a renewal has proven it already
    return Proven{.own = own, .since_read = false};
  }
  const PresenceId id = own->presence.id;
  ASSIGN_OR_RETURN(const auto proven, prove(*own, limit));
  if (proven) {
    return Proven{.own = own, .since_read = true};
  }
  const auto bound = after.bindings.find(m_asked.owner);
  const bool counts =
      bound != after.bindings.end() && std::ranges::find(bound->second, id, &BoundPresence::id) != bound->second.end();
  return counts ? Result(Proven{.own = nullptr, .since_read = true}) : make(wanted, limit);
}

Result<Done> PresenceStage::bind_to(Round& round, const Wanted& wanted, const CallLimits& limit)
{
  const std::string& lock = round.work.lock.text();
  ASSIGN_OR_RETURN(const auto proven, own_for(wanted, round.after, limit));
  Own* const own = proven.own;
  if (own == nullptr) {
    round.is_stale = true;
    return Done{};
  }
  const PresenceId id = own->presence.id;
  std::vector<BoundPresence>& bound = round.after.bindings[m_asked.owner];
  // The place of a waiter lasts without a proof that the record knows; so a look of one of many waiters writes nothing.
  const bool counts_on_proof = proven.since_read && wanted.use == Use::holds;
  bool is_changed = add_binding(bound, own->presence, own->made_for.keeping) || counts_on_proof;
  own->users[{lock, m_asked.owner, m_asked.hold}] = wanted.use;
  const bool is_shown_later =
      lengthen_hold(round.after, round.work.lock, m_asked.owner, shown_end_ms(own->presence.lease, round.state.read));
  is_changed = is_changed || (is_shown_later && own->made_for.keeping == Keeping::unkept);
  for (Own& each : m_own) {  // the one with which the owner has waited
    const auto left = each.presence.id == id ? 0 : std::erase_if(each.users, [&](const auto& user) {
      return user.first.lock == lock && user.first.owner == m_asked.owner;
    });
    if (left > 0) {
      const auto unbound = std::erase_if(bound, [&](const BoundPresence& old) { return old.id == each.presence.id; });
      is_changed = is_changed || unbound > 0;
    }
  }
  round.must_write = round.must_write || is_changed;
  round.needed = {id};
  return Done{};
}

// --min-hold: no client renews the hold from now on.
Result<Done> PresenceStage::keep_after_release(Round& round, const Standing& standing, const CallLimits& limit)
{
  const Millis lease{std::max<std::int64_t>(standing.ends_ms - round.after.time_us / 1000, 1)};
  ASSIGN_OR_RETURN(const auto kept, m_presences.make(lease, Keeping::unkept, limit));
  round.after.bindings[m_asked.owner] = {
      {.id = kept.id, .lease_ms = kept.lease.length.count(), .keeping = Keeping::unkept}};
  leave_lock(round.work.lock);
  round.must_write = true;
  round.needed = {kept.id};
  return Done{};
}

// Another hold of the owner is left, maybe that of another process with a presence of its own.
void PresenceStage::unbind_hold(Round& round)
{
  const std::string& lock = round.work.lock.text();
  Own* const own = find(m_asked.owner);
  const auto bound = round.after.bindings.find(m_asked.owner);
  const User user{lock, m_asked.owner, m_asked.hold};
  if (own == nullptr || bound == round.after.bindings.end() || !own->users.contains(user)) {
    return;
  }
  const auto holds = std::ranges::count_if(
      own->users, [&](const auto& each) { return each.first.lock == lock && each.first.owner == m_asked.owner; });
  if (holds == 1 && bound->second.size() == 1) {
    return;  // nothing else keeps what is left
  }
  m_leaving.insert(user);
  const auto unbound =
      holds > 1 ? 0
                : std::erase_if(bound->second, [&](const BoundPresence& each) { return each.id == own->presence.id; });
  round.must_write = round.must_write || unbound > 0;
}

// The owner has nothing more there.
void PresenceStage::leave_lock(const LockName& lock)
{
  for (const Own& own : m_own) {
    for (const auto& [user, use] : own.users) {
      if (user.lock == lock.text() && user.owner == m_asked.owner) {
        m_leaving.insert(user);
      }
    }
  }
}

// The lease begins to run out when the revocation is known to be in the store.
void PresenceStage::note_revocation(const Round& round)
{
  const auto bound = round.after.bindings.find(m_asked.owner);
  auto fence = revoked_hold(round.after.keys, round.work.lock, m_asked.owner);
  if (bound != round.after.bindings.end() && fence) {
    m_revoked = {{round.work.lock.text(), m_asked.owner},
                 {.fence = *std::move(fence), .known_at = {}, .lease = Millis{longest_lease(bound->second)}}};
  }
}

// An unkept presence serves one owner on one lock. That of another process would last for its lease, and so would a keeper of it.
Result<Done> PresenceStage::after_script(Round& round, const CallLimits& limit)
{
  RETURN_IF_ERROR(bind(round, limit));
  m_unbound = unkept_in(round.state.record.bindings);
  const std::vector<PresenceId> named = presences_in(round.after.bindings);
  std::erase_if(m_unbound, [&](const PresenceId& id) {
    return std::ranges::find(named, id) != named.end() ||
           std::ranges::any_of(m_own, [&](const Own& own) { return own.presence.id == id; });
  });
  return Done{};
}

Result<Done> PresenceStage::bind(Round& round, const CallLimits& limit)
{
  drop_idle(round.after, round.work.lock);
  const Standing standing = standing_of(round.after.keys, round.work.lock, m_asked.owner);
  if (m_asked.verb != Asked::Verb::other && m_asked.verb != Asked::Verb::revoke && !standing.holds && !standing.waits) {
    leave_lock(round.work.lock);
    return Done{};
  }
  const Keeping keeping = m_asked.is_automatic ? Keeping::kept : Keeping::unkept;
  switch (m_asked.verb) {
    case Asked::Verb::acquire:
      if (is_answer<answers::Granted>(round.answer)) {
        return bind_to(round, {.lease = m_asked.ttl, .keeping = keeping, .use = Use::holds}, limit);
      }
      if (is_answer<answers::Busy>(round.answer) && standing.waits) {
        const Millis waiting = round.keeps_presence ? m_asked.ttl : std::min(m_asked.ttl, longest_waiting_lease);
        return bind_to(round,
                       {.lease = waiting, .keeping = round.keeps_presence ? keeping : Keeping::kept, .use = Use::waits},
                       limit);
      }
      break;
    case Asked::Verb::renew:
      if (!is_answer<answers::Kept>(round.answer)) {
        break;
      }
      if (round.keeps_presence && find(m_asked.owner) == nullptr) {
        return Error{ErrorCode::config, "the lock " + printable(round.work.lock.text()) +
                                            " ends with the session of the rlock that took it, so no other one can "
                                            "renew it (let that rlock renew it: acquire --pid)"};
      }
      return bind_to(round, {.lease = m_asked.ttl, .keeping = Keeping::unkept, .use = Use::holds}, limit);
    case Asked::Verb::release:
      if (is_answer<answers::Released>(round.answer)) {
        return keep_after_release(round, standing, limit);
      }
      if (is_answer<answers::StillHeld>(round.answer)) {
        unbind_hold(round);
      }
      break;
    case Asked::Verb::revoke: note_revocation(round); break;
    case Asked::Verb::other: break;
  }
  return Done{};
}

// False: some end with their lease.
bool PresenceStage::remove_unbound(const CallLimits& limit)
{
  bool all_removed = true;
  for (const PresenceId& id : std::exchange(m_unbound, {})) {
    all_removed = m_presences.remove(id, limit) && all_removed;
  }
  return all_removed;
}

// The hold ends with its presences, unless one was not removed, or is that of another process. The store does not hear of the run, and
// the hand-over has not happened.
void PresenceStage::do_without_commit(Round& round, const CallLimits& limit)
{
  const Error& why = round.commit->error();
  const bool was_held = is_answer<answers::Released>(round.answer);
  const bool ends_any = !m_leaving.empty() || !m_unbound.empty();
  const bool may_do = m_asked.verb == Asked::Verb::release && why.no_room && ends_any &&
                      (was_held || is_answer<answers::Left>(round.answer));
  if (!may_do) {
    return;
  }
  const bool all_unbound = remove_unbound(limit);
  if (finish_leaving(limit) && all_unbound) {
    round.answer = was_held ? reply_with(answers::Released{.untold = why.text}) : round.answer;
    round.commit.reset();
  }
}

Result<Done> PresenceStage::after_commit(Round& round, const CallLimits& limit)
{
  if (round.commit && !*round.commit) {
    do_without_commit(round, limit);
  } else if (round.commit && std::holds_alternative<PresenceGone>(**round.commit)) {
    forget(round.needed);
  } else if (round.is_done()) {
    if (round.committed() != nullptr) {
      remove_unbound(limit);
    }
    finish_leaving(limit);
  }
  return Done{};
}

// Remembers the revocation that was committed, and removes the presences that no owner uses any more. False: some presences end
// with their lease.
bool PresenceStage::finish_leaving(const CallLimits& limit)
{
  if (m_revoked) {
    auto& [what, revocation] = *m_revoked;
    Revocation& known = m_revocations[what];
    if (known.fence != revocation.fence || known.known_at == Instant{}) {
      known = std::move(revocation);
      known.known_at = m_clock.now();
    }
    m_revoked.reset();
  }
  bool all_removed = true;
  for (auto own = m_own.begin(); own != m_own.end();) {
    std::erase_if(own->users, [this](const auto& user) { return m_leaving.contains(user.first); });
    if (own->users.empty()) {
      all_removed = m_presences.remove(own->presence.id, limit) && all_removed;
      own = m_own.erase(own);
    } else {
      ++own;
    }
  }
  m_leaving.clear();
  return all_removed;
}

}  // namespace rlock::record
