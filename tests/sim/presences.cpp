// SPDX-License-Identifier: Apache-2.0
#include "sim/presences.h"

#include <algorithm>

namespace rlock::sim {
namespace {

using record::NoLonger;
using record::Presence;
using record::PresenceId;
using record::Proof;

// A session is a little longer than what was asked for, as ZooKeeper rounds to its ticks.
constexpr Millis session_step{50};

Error not_proven() { return {ErrorCode::unreachable, "the simulated store did not prove the session"}; }

}  // namespace

Result<Presence> SimulatedPresences::make(Millis lease, record::Keeping, const CallLimits& limit)
{
  const Millis length = (lease + session_step - Millis{1}) / session_step * session_step;
  const PresenceId id = "session " + std::to_string(m_records.draw());
  const Instant sent_at = m_clock.now();
  const auto made = m_records.ask<Done>(
      m_connection,
      [&members = m_records.members(), id, length] {
        members.make(id, nanos(length));
        return Done{};
      },
      m_clock, limit);
  if (!made) {
    return made.error();
  }
  m_own[id] = length;
  return Presence{.id = id, .lease = {.from = sent_at, .length = length}};
}

Result<Members::Answer> SimulatedPresences::keep_alive(Records::Connection& connection, const PresenceId& id,
                                                       const CallLimits& limit)
{
  if (!m_records.reach(connection)) {
    return not_proven();
  }
  Members& members = m_records.members();
  return m_records.ask<Members::Answer>(
      connection, [&members, id, on = connection->member] { return members.keep_alive(on, id); }, m_clock, limit,
      [&members, id, on = connection->member] { return members.keep_alive_served_at(on, id); });
}

Result<Proof> SimulatedPresences::prove(const PresenceId& id, const CallLimits& limit)
{
  const LeaseTerm lease{.from = m_clock.now(), .length = m_own.at(id)};
  const bool is_plain = has(RecordMistake::keep_alive_is_proof);
  const auto kept = keep_alive(is_plain ? m_pings : m_connection, id, limit);
  if (!kept) {
    return kept.error();
  }
  if (is_plain) {
    return kept->lives ? Proof{lease} : Proof{NoLonger{}};
  }
  const auto connection = m_connection;
  const auto seen =
      has(RecordMistake::stale_read_proves)
          ? keep_alive(m_connection, id, limit)  // a second answer from the same memory
          : m_records.ask<Members::Answer>(
                m_connection, [&members = m_records.members(), id] { return members.look(id); }, m_clock, limit);
  if (!seen) {
    return seen.error();
  }
  if (!seen->lives) {
    return Proof{NoLonger{}};
  }
  const bool is_one_leader = kept->term == seen->term || has(RecordMistake::any_leader_proves);
  return kept->lives && connection == m_connection && is_one_leader ? Result(Proof{lease}) : not_proven();
}

Result<std::vector<PresenceId>> SimulatedPresences::gone(std::span<const PresenceId> ids, const CallLimits& limit)
{
  m_last_gone.clear();
  if (has(RecordMistake::presences_before_record)) {
    std::ranges::copy_if(ids, std::back_inserter(m_last_gone),
                         [this](const auto& id) { return !m_seen_before.contains(id); });
    return m_last_gone;
  }
  if (m_connection == nullptr || m_connection != m_read_on || m_connection->is_cut || m_connection->is_closed) {
    return Error{ErrorCode::unreachable, "the simulated store is another one since the read"};
  }
  const auto over = m_records.ask<std::vector<PresenceId>>(
      m_connection,
      [&members = m_records.members(), all = std::vector(ids.begin(), ids.end())] {
        std::vector<PresenceId> found;
        std::ranges::copy_if(all, std::back_inserter(found), [&](const auto& id) { return !members.is_seen(id); });
        return found;
      },
      m_clock, limit);
  if (over) {
    m_last_gone = *over;
  }
  return over;
}

Result<Done> SimulatedPresences::remove(const PresenceId& id, const CallLimits& limit)
{
  m_own.erase(id);
  return m_records.ask<Done>(
      m_connection,
      [&members = m_records.members(), id] {
        members.remove(id);
        return Done{};
      },
      m_clock, limit);
}

Result<Done> SimulatedPresences::before_read(const CallLimits& limit)
{
  m_last_gone.clear();
  if (!has(RecordMistake::presences_before_record)) {
    return Done{};
  }
  auto seen = m_records.ask<std::set<PresenceId>>(
      m_connection, [&members = m_records.members()] { return members.all_seen(); }, m_clock, limit);
  if (!seen) {
    return seen.error();
  }
  m_seen_before = *std::move(seen);
  return Done{};
}

Result<Done> SimulatedPresences::put_late(const std::vector<PresenceId>& ids, const CallLimits& limit)
{
  return m_records.ask<Done>(
      m_connection,
      [&members = m_records.members(), ids] {
        std::ranges::for_each(ids, [&](const auto& id) { members.put(id); });
        return Done{};
      },
      m_clock, limit);
}

}  // namespace rlock::sim
