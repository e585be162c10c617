// SPDX-License-Identifier: Apache-2.0
#include "sim/members.h"

#include <algorithm>

namespace rlock::sim {
namespace {

constexpr Nanos shortest_election = nanos(Millis{10});
constexpr Nanos longest_election = nanos(Millis{150});
constexpr std::uint64_t no_term = 0;  // of an answer that no leader has given

}  // namespace

Members::Members(World& world, std::uint64_t seed) : m_world(world), m_rng(seed * 389 + 11) {}

bool Members::is_away(int member) const
{
  return m_world.now() < m_members[static_cast<std::size_t>(member)].away_until;
}

// What a member that is away was asked is lost, or is passed on when it is back.
std::optional<Nanos> Members::served_at(int member)
{
  const Nanos now = m_world.now();
  if (is_away(member)) {
    return m_rng.one_in(2) ? std::nullopt : std::optional(at(member).away_until);
  }
  return std::max(now, m_elected_at);
}

std::optional<Nanos> Members::keep_alive_served_at(int member, const record::PresenceId& id)
{
  const Member& asked = at(member);
  if (m_world.now() < asked.stands_still_until) {
    return asked.stands_still_until;
  }
  return is_away(member) && asked.remembered.contains(id) ? m_world.now() : served_at(member);
}

Nanos Members::speaks_at(int member) const
{
  return std::max(m_world.now(), m_members[static_cast<std::size_t>(member)].away_until);
}

// A session that is over never comes back. Without a leader none ends, and a new leader gives each its whole time again.
void Members::end_expired()
{
  if (m_is_up && m_world.now() >= m_elected_at) {
    std::erase_if(m_sessions, [now = m_world.now()](const auto& each) { return each.second.ends <= now; });
  }
}

void Members::make(const record::PresenceId& id, Nanos length)
{
  m_sessions.try_emplace(id, Session{.ends = m_world.now() + length, .length = length});
}

Members::Answer Members::keep_alive(int member, const record::PresenceId& id)
{
  if (is_away(member)) {
    return {.lives = true, .term = at(member).term};
  }
  end_expired();
  const auto session = m_sessions.find(id);
  if (session == m_sessions.end()) {
    return {.lives = false, .term = m_term};
  }
  session->second.ends = std::max(session->second.ends, m_world.now() + session->second.length);
  return {.lives = true, .term = m_term};
}

Members::Answer Members::look(const record::PresenceId& id) { return {.lives = has_session(id), .term = m_term}; }

void Members::put(const record::PresenceId& id)
{
  if (const auto session = m_sessions.find(id); session != m_sessions.end()) {
    session->second.is_put = true;
  }
}

bool Members::has_session(const record::PresenceId& id)
{
  end_expired();
  return m_sessions.contains(id);
}

bool Members::is_seen(const record::PresenceId& id) { return has_session(id) && m_sessions.at(id).is_put; }

std::set<record::PresenceId> Members::all_seen()
{
  end_expired();
  std::set<record::PresenceId> ids;
  for (const auto& [id, session] : m_sessions) {
    if (session.is_put) {
      ids.insert(id);
    }
  }
  return ids;
}

Nanos Members::lasts_for(const record::PresenceId& id)
{
  return is_seen(id) ? std::max<Nanos>(m_sessions.at(id).ends - m_world.now(), 1) : 0;
}

void Members::elect(Nanos takes)
{
  ++m_term;
  m_elected_at = m_world.now() + takes;
  for (auto& [id, session] : m_sessions) {
    session.ends = m_elected_at + session.length;
  }
}

int Members::member_to_leave(int wanted) const
{
  for (int member = 0; member < count; ++member) {
    if (is_away(member)) {
      return member;
    }
  }
  return wanted;
}

void Members::leave(int member, Nanos stands_still, Nanos away)
{
  end_expired();
  Member& leaving = at(member);
  if (!is_away(member)) {
    leaving.term = member == m_leader ? m_term : no_term;
    leaving.remembered.clear();
    for (const auto& [id, session] : m_sessions) {
      leaving.remembered.insert(id);
    }
  }
  leaving.stands_still_until = std::max(leaving.stands_still_until, m_world.now() + stands_still);
  leaving.away_until = std::max(leaving.away_until, m_world.now() + away);
  if (member == m_leader) {
    m_leader = (member + 1) % count;
    elect(shortest_election + m_rng.up_to(longest_election - shortest_election));
  }
}

void Members::cut_off(Nanos lasts) { leave(member_to_leave(any()), 0, lasts); }

void Members::stop_leader(Nanos lasts, Nanos more) { leave(member_to_leave(m_leader), lasts, lasts + more); }

void Members::all_stopped()
{
  end_expired();
  m_is_up = false;
}

void Members::all_started()
{
  if (!m_is_up) {
    m_is_up = true;
    elect(0);
  }
}

}  // namespace rlock::sim
