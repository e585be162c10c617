// SPDX-License-Identifier: Apache-2.0
// The presences of one simulated client, as an adapter makes them: a session, and a node that comes with the first commit that needs
// it. A proof is a keep-alive, and after it a commit of a majority, on the same connection and under the same leader.
#pragma once

#include "sim/records.h"

#include <set>
#include <vector>

namespace rlock::sim {

class SimulatedPresences final : public record::Presences {
 public:
  // All must outlive it. `connection`: that of the backend.
  SimulatedPresences(Records& records, std::shared_ptr<RecordConnection>& connection, const Clock& clock)
      : m_records(records), m_connection(connection), m_clock(clock)
  {
  }

  Result<record::Presence> make(Millis lease, record::Keeping keeping, const CallLimits& limit) override;
  Result<record::Proof> prove(const record::PresenceId& id, const CallLimits& limit) override;
  Result<std::vector<record::PresenceId>> gone(std::span<const record::PresenceId> ids,
                                               const CallLimits& limit) override;
  Result<Done> remove(const record::PresenceId& id, const CallLimits& limit) override;

  // Around a read of the record.
  Result<Done> before_read(const CallLimits& limit);
  void after_read() { m_read_on = m_connection; }
  // That the last state had.
  [[nodiscard]] const std::vector<record::PresenceId>& last_gone() const { return m_last_gone; }
  // After a commit, by mistake.
  Result<Done> put_late(const std::vector<record::PresenceId>& ids, const CallLimits& limit);

 private:
  Result<Members::Answer> keep_alive(Records::Connection& connection, const record::PresenceId& id,
                                     const CallLimits& limit);
  [[nodiscard]] bool has(RecordMistake mistake) const { return m_records.mistake() == mistake; }

  Records& m_records;
  std::shared_ptr<RecordConnection>& m_connection;
  const Clock& m_clock;
  std::shared_ptr<RecordConnection> m_read_on;
  std::shared_ptr<RecordConnection> m_pings;  // a connection of their own, for a mistake
  std::map<record::PresenceId, Millis> m_own;
  std::vector<record::PresenceId> m_last_gone;
  std::set<record::PresenceId> m_seen_before;  // the read, for a mistake
};

}  // namespace rlock::sim
