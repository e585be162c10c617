// SPDX-License-Identifier: Apache-2.0
#include "engine/presence_keeper.h"

#include <algorithm>
#include "base/text.h"
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

}  // namespace

Asked asked_of(const VerbRequest& request)
{
  Asked asked{.owner = request.owner.text()};
  if (const auto* acquire = request.as<calls::Acquire>()) {
    const auto info = decode_holder(acquire->info);
    asked.verb = Asked::Verb::acquire;
    asked.hold = acquire->hold_id;
    asked.ttl = acquire->ttl;
    asked.is_automatic = info && info->automatic;
  } else if (const auto* renewal = request.as<calls::Renew>(); renewal != nullptr && renewal->ttl > Millis{0}) {
    asked.verb = Asked::Verb::renew;
    asked.hold = renewal->hold_id.empty() ? asked.owner : renewal->hold_id;
    asked.ttl = renewal->ttl;
  } else if (const auto* release = request.as<calls::Release>()) {
    asked.verb = Asked::Verb::release;
    asked.hold = release->hold_id;
  } else if (const auto* force = request.as<calls::Force>(); force != nullptr && force->step == ForceStep::revoke) {
    asked.verb = Asked::Verb::revoke;
  }
  return asked;
}

bool PresenceKeeper::Own::serves(const std::string& owner, Use use) const
{
  return std::ranges::any_of(users, [&](const auto& each) { return each.first.owner == owner && each.second == use; });
}

const PresenceKeeper::Own* PresenceKeeper::find(const std::string& owner) const
{
  for (const Use use : {Use::holds, Use::waits}) {
    const auto own = std::ranges::find_if(m_own, [&](const Own& each) { return each.serves(owner, use); });
    if (own != m_own.end()) {
      return &*own;
    }
  }
  return nullptr;
}

PresenceKeeper::Own* PresenceKeeper::find(const std::string& owner)
{
  const Own* const own = std::as_const(*this).find(owner);
  return own == nullptr ? nullptr : &m_own[static_cast<std::size_t>(own - m_own.data())];
}

std::optional<LeaseTerm> PresenceKeeper::lease_of(const std::string& owner) const
{
  const Own* const own = find(owner);
  return own != nullptr ? std::optional(own->presence.lease) : std::nullopt;
}

// An owner holds all its locks with one presence; a waiter that gets the lock may need another lease. No two owners share a presence:
// it is removed with the release of its owner, so that a commit that arrives later changes nothing.
PresenceKeeper::Own* PresenceKeeper::fitting(const Asked& asked, const Wanted& wanted)
{
  Own* const own = find(asked.owner);
  const bool fits =
      own != nullptr && (wanted.use == Use::waits || own->serves(asked.owner, Use::holds) ||
                         (own->made_for.lease == wanted.lease && own->made_for.keeping == wanted.keeping));
  return fits ? own : nullptr;
}

Result<PresenceKeeper::Proven> PresenceKeeper::make(const Wanted& wanted, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(auto made, m_presences.make(wanted.lease, wanted.keeping, limit));
  m_own.push_back({.presence = std::move(made), .made_for = wanted, .users = {}});
  return Proven{.own = &m_own.back(), .since_read = true};
}

// False: the presence is gone.
Result<bool> PresenceKeeper::prove(Own& own, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto proof, m_presences.prove(own.presence.id, limit));
  if (const auto* lease = std::get_if<LeaseTerm>(&proof)) {
    own.presence.lease = *lease;
    return true;
  }
  lost({PresenceId(own.presence.id)});
  return false;
}

void PresenceKeeper::lost(const std::vector<PresenceId>& ids)
{
  std::erase_if(m_own, [&](const Own& own) { return std::ranges::find(ids, own.presence.id) != ids.end(); });
}

Result<Done> PresenceKeeper::renew(const Asked& asked, const CallLimits& limit)
{
  Own* const own = asked.verb == Asked::Verb::renew ? find(asked.owner) : nullptr;
  if (own == nullptr) {
    return Done{};
  }
  const auto proven = prove(*own, limit);
  return proven ? Result(Done{}) : proven.error();
}

Result<Done> PresenceKeeper::complete(const LockName& lock, Snapshot& state, const CallLimits& limit)
{
  m_revoked.reset();  // a commit whose answer was lost
  ASSIGN_OR_RETURN(const auto record, decode(state.bytes));
  if (const auto ahead = m_ahead.find(lock.text()); ahead != m_ahead.end()) {
    state.time_us += ahead->second;
  }
  if (record.time_us > state.time_us) {
    m_ahead[lock.text()] += record.time_us - state.time_us;
    state.time_us = record.time_us;
  }
  m_time_us = state.time_us;
  m_time_at = state.time_at;
  std::vector<PresenceId> ids = state.knows_gone ? std::vector<PresenceId>() : presences_to_ask(record, lock);
  m_unkept_before = unkept_in(record.bindings);
  std::erase_if(ids, [this](const PresenceId& id) {  // what is proven lives
    return std::ranges::any_of(m_own, [&](const Own& own) {
      return own.presence.id == id && LeaseBudget(own.presence.lease).valid_until() > m_clock.now();
    });
  });
  if (ids.empty()) {
    return Done{};
  }
  ASSIGN_OR_RETURN(auto gone, m_presences.gone(ids, limit));
  state.gone = std::move(gone);
  return Done{};
}

void PresenceKeeper::ask_ahead(StatesAndLogs& states, const CallLimits& limit)
{
  std::vector<PresenceId> ids;
  for (const auto& [name, known] : states) {
    const auto lock = LockName::parse(name);
    const auto record = decode(known.state.bytes);
    if (lock && record) {
      std::ranges::move(presences_to_ask(*record, *lock), std::back_inserter(ids));
    }
  }
  auto gone = ids.empty() ? Result(std::vector<PresenceId>()) : m_presences.gone(ids, limit);
  if (!gone) {
    return;
  }
  for (auto& [name, known] : states) {
    known.state.gone = *gone;
    known.state.knows_gone = true;
  }
}

bool PresenceKeeper::prepare(const Asked& asked, const LockName& lock, LockRecord& record, const Snapshot& state)
{
  m_ended = end_gone(record, lock, state.gone, state.time_us);
  if (asked.verb != Asked::Verb::revoke) {
    return false;
  }
  const auto revoked = m_revocations.find({lock.text(), asked.owner});
  if (revoked == m_revocations.end()) {
    return false;
  }
  const auto& [fence, known_at, lease] = revoked->second;
  if (revoked_hold(record.keys, lock, asked.owner) != fence ||
      m_clock.now() < known_at + lease + drift_allowed(lease)) {
    return false;
  }
  end_owner(record, lock, asked.owner);
  record.bindings.erase(asked.owner);
  return true;
}

// With a proof that is young enough.
Result<PresenceKeeper::Proven> PresenceKeeper::own_for(const Asked& asked, const Wanted& wanted,
                                                       const LockRecord& after, const CallLimits& limit)
{
  Own* const own = fitting(asked, wanted);
  if (own == nullptr) {
    return make(wanted, limit);
  }
  const LeaseTerm& lease = own->presence.lease;
  const bool is_fresh =
      own->made_for.keeping == Keeping::kept && m_clock.now() < lease.from + lease.length / proofs_per_lease;
  if (is_fresh || asked.verb == Asked::Verb::renew) {  // a renewal has proven it already
    return Proven{.own = own, .since_read = false};
  }
  const PresenceId id = own->presence.id;
  ASSIGN_OR_RETURN(const auto proven, prove(*own, limit));
  if (proven) {
    return Proven{.own = own, .since_read = true};
  }
  const auto bound = after.bindings.find(asked.owner);
  const bool counts =
      bound != after.bindings.end() && std::ranges::find(bound->second, id, &BoundPresence::id) != bound->second.end();
  return counts ? Result(Proven{.own = nullptr, .since_read = true}) : make(wanted, limit);
}

// When the lease ends by the scripts' time. A part of a millisecond is lost, for which holders have an allowance.
std::int64_t PresenceKeeper::shown_end_ms(const LeaseTerm& lease) const
{
  const auto since_read = std::chrono::duration_cast<std::chrono::microseconds>(lease.from - m_time_at);
  return (m_time_us + since_read.count()) / 1000 + lease.length.count();
}

Result<PresenceKeeper::Bound> PresenceKeeper::bind_to(const Asked& asked, const LockName& lock, const Wanted& wanted,
                                                      LockRecord& after, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto proven, own_for(asked, wanted, after, limit));
  Own* const own = proven.own;
  if (own == nullptr) {
    return Bound{.is_stale = true};
  }
  const PresenceId id = own->presence.id;
  std::vector<BoundPresence>& bound = after.bindings[asked.owner];
  // The place of a waiter lasts without a proof that the record knows; so a look of one of many waiters writes nothing.
  const bool counts_on_proof = proven.since_read && wanted.use == Use::holds;
  bool is_changed = add_binding(bound, own->presence, own->made_for.keeping) || counts_on_proof;
  own->users[{lock.text(), asked.owner, asked.hold}] = wanted.use;
  const bool is_shown_later = lengthen_hold(after, lock, asked.owner, shown_end_ms(own->presence.lease));
  is_changed = is_changed || (is_shown_later && own->made_for.keeping == Keeping::unkept);
  for (Own& each : m_own) {  // the one with which the owner has waited
    const auto left = each.presence.id == id ? 0 : std::erase_if(each.users, [&](const auto& user) {
      return user.first.lock == lock.text() && user.first.owner == asked.owner;
    });
    if (left > 0) {
      const auto unbound = std::erase_if(bound, [&](const BoundPresence& old) { return old.id == each.presence.id; });
      is_changed = is_changed || unbound > 0;
    }
  }
  return Bound{.is_changed = is_changed, .needed = {id}};
}

// --min-hold: no client renews the hold from now on.
Result<PresenceKeeper::Bound> PresenceKeeper::keep_after_release(const Asked& asked, const LockName& lock,
                                                                 const Standing& standing, LockRecord& after,
                                                                 const CallLimits& limit)
{
  const Millis lease{std::max<std::int64_t>(standing.ends_ms - after.time_us / 1000, 1)};
  ASSIGN_OR_RETURN(const auto kept, m_presences.make(lease, Keeping::unkept, limit));
  after.bindings[asked.owner] = {{.id = kept.id, .lease_ms = kept.lease.length.count(), .keeping = Keeping::unkept}};
  leave_lock(asked, lock);
  return Bound{.is_changed = true, .needed = {kept.id}};
}

// Another hold of the owner is left, maybe that of another process with a presence of its own.
PresenceKeeper::Bound PresenceKeeper::unbind_hold(const Asked& asked, const LockName& lock, LockRecord& after)
{
  Own* const own = find(asked.owner);
  const auto bound = after.bindings.find(asked.owner);
  const User user{lock.text(), asked.owner, asked.hold};
  if (own == nullptr || bound == after.bindings.end() || !own->users.contains(user)) {
    return {};
  }
  const auto holds = std::ranges::count_if(
      own->users, [&](const auto& each) { return each.first.lock == lock.text() && each.first.owner == asked.owner; });
  if (holds == 1 && bound->second.size() == 1) {
    return {};  // nothing else keeps what is left
  }
  m_leaving.insert(user);
  const auto unbound =
      holds > 1 ? 0
                : std::erase_if(bound->second, [&](const BoundPresence& each) { return each.id == own->presence.id; });
  return {.is_changed = unbound > 0};
}

// The owner has nothing more there.
void PresenceKeeper::leave_lock(const Asked& asked, const LockName& lock)
{
  for (const Own& own : m_own) {
    for (const auto& [user, use] : own.users) {
      if (user.lock == lock.text() && user.owner == asked.owner) {
        m_leaving.insert(user);
      }
    }
  }
}

// The lease begins to run out when the revocation is known to be in the store.
void PresenceKeeper::note_revocation(const Asked& asked, const LockName& lock, const LockRecord& after)
{
  const auto bound = after.bindings.find(asked.owner);
  auto fence = revoked_hold(after.keys, lock, asked.owner);
  if (bound != after.bindings.end() && fence) {
    m_revoked = {{lock.text(), asked.owner},
                 {.fence = *std::move(fence), .known_at = {}, .lease = Millis{longest_lease(bound->second)}}};
  }
}

// An unkept presence serves one owner on one lock. That of another process would last for its lease, and so would a keeper of it.
Result<PresenceKeeper::Bound> PresenceKeeper::bind(const Asked& asked, const LockName& lock, const std::string& answer,
                                                   LockRecord& after, const CallLimits& limit)
{
  auto bound = bind_owner(asked, lock, answer, after, limit);
  m_unbound = m_unkept_before;
  const std::vector<PresenceId> named = presences_in(after.bindings);
  std::erase_if(m_unbound, [&](const PresenceId& id) {
    return std::ranges::find(named, id) != named.end() ||
           std::ranges::any_of(m_own, [&](const Own& own) { return own.presence.id == id; });
  });
  return bound;
}

Result<PresenceKeeper::Bound> PresenceKeeper::bind_owner(const Asked& asked, const LockName& lock,
                                                         const std::string& answer, LockRecord& after,
                                                         const CallLimits& limit)
{
  m_leaving.clear();
  drop_idle(after, lock);
  const Standing standing = standing_of(after.keys, lock, asked.owner);
  if (asked.verb != Asked::Verb::other && asked.verb != Asked::Verb::revoke && !standing.holds && !standing.waits) {
    leave_lock(asked, lock);
    return Bound{};
  }
  const Keeping keeping = asked.is_automatic ? Keeping::kept : Keeping::unkept;
  switch (asked.verb) {
    case Asked::Verb::acquire:
      if (answer == answers::Granted::word) {
        return bind_to(asked, lock, {.lease = asked.ttl, .keeping = keeping, .use = Use::holds}, after, limit);
      }
      if (answer == answers::Busy::word && standing.waits) {
        const Millis waiting = asked.keeps_presence ? asked.ttl : std::min(asked.ttl, longest_waiting_lease);
        return bind_to(asked, lock,
                       {.lease = waiting, .keeping = asked.keeps_presence ? keeping : Keeping::kept, .use = Use::waits},
                       after, limit);
      }
      break;
    case Asked::Verb::renew:
      if (answer == answers::Kept::word && asked.keeps_presence && find(asked.owner) == nullptr) {
        return Error{ErrorCode::config, "the lock " + printable(lock.text()) +
                                            " ends with the session of the rlock that took it, so no other one can "
                                            "renew it (let that rlock renew it: acquire --pid)"};
      }
      if (answer == answers::Kept::word) {
        return bind_to(asked, lock, {.lease = asked.ttl, .keeping = Keeping::unkept, .use = Use::holds}, after, limit);
      }
      break;
    case Asked::Verb::release:
      if (answer == answers::Released::word) {
        return keep_after_release(asked, lock, standing, after, limit);
      }
      if (answer == answers::StillHeld::word) {
        return unbind_hold(asked, lock, after);
      }
      break;
    case Asked::Verb::revoke: note_revocation(asked, lock, after); break;
    case Asked::Verb::other: break;
  }
  return Bound{};
}

bool PresenceKeeper::remove_unbound(const CallLimits& limit)
{
  bool all_removed = true;
  for (const PresenceId& id : std::exchange(m_unbound, {})) {
    all_removed = m_presences.remove(id, limit) && all_removed;
  }
  return all_removed;
}

bool PresenceKeeper::end_without_commit(const CallLimits& limit)
{
  const bool ends_any = !m_leaving.empty() || !m_unbound.empty();
  const bool all_unbound = remove_unbound(limit);
  return settle(limit) && all_unbound && ends_any;
}

bool PresenceKeeper::settle(const CallLimits& limit)
{
  bool all_removed = true;
  if (m_revoked) {
    auto& [what, revocation] = *m_revoked;
    Revocation& known = m_revocations[what];
    if (known.fence != revocation.fence || known.known_at == Instant{}) {
      known = std::move(revocation);
      known.known_at = m_clock.now();
    }
    m_revoked.reset();
  }
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
