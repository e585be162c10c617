// SPDX-License-Identifier: Apache-2.0
// Presences as ephemeral nodes. Private to stores/zookeeper.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>
#include "engine/presence.h"
#include "stores/zookeeper/zookeeper_client.h"
#include "stores/zookeeper/zookeeper_layout.h"
#include "stores/zookeeper/zookeeper_listener.h"

namespace rlock::zookeeper {

// The presences that are kept share the session of the requests, where they have asked for the same lease; others have sessions of
// their own.
class NodePresences final : public record::Presences {
 public:
  // All must outlive it.
  NodePresences(const SharedClient& shared, const Layout& layout, const Clock& clock)
      : m_shared(shared), m_client(shared.client), m_layout(layout), m_clock(clock)
  {
  }

  Result<record::Presence> make(Millis lease, record::Keeping keeping, const CallLimits& limit) override;
  Result<record::Proof> prove(const record::PresenceId& id, const CallLimits& limit) override;
  Result<std::vector<record::PresenceId>> gone(std::span<const record::PresenceId> ids,
                                               const CallLimits& limit) override;
  Result<Done> remove(const record::PresenceId& id, const CallLimits& limit) override;
  // Unkept ones whose lease is longer than the longest session of the ensemble.
  [[nodiscard]] std::optional<Millis> lasts_without_keeper() const override;
  bool keep_leases() override;

  // The part of a commit that needs the presence: makes the node, or checks that it is there.
  [[nodiscard]] Operation creation_or_check(const record::PresenceId& id) const;
  void note_made(const record::PresenceId& id);
  void note_gone(const record::PresenceId& id) { m_own.erase(id); }
  // The parts of a commit that fail (Code::node_exists) where the presence exists by the tree of the leader. The server that was asked
  // may have another tree: 3.8.0 let sessions go on that two of three members had closed.
  [[nodiscard]] std::array<Operation, 2> absent(const record::PresenceId& id) const;
  // Whether a presence is in the session of the requests.
  [[nodiscard]] bool shares_session() const { return has_any_in(*m_client); }
  // Asks in the session of the presence.
  Result<Answer> ask_as(const record::PresenceId& id, const Operation& operation, const CallLimits& limit);
  // The connection of the last read.
  void note_read() { m_read_connection = m_client->connection_number(); }

 private:
  struct Own {
    std::shared_ptr<Client> client;
    std::uint64_t session;  // Client::session_number
    bool is_kept;
    Millis wanted;             // the lease that was asked for
    bool is_in_store = false;  // the node was made
    bool is_needed = false;    // a commit has needed it
    // Of a session that is unkept, whatever its length, because a process keeps it.
    [[nodiscard]] LeaseTerm lease() const;
    [[nodiscard]] bool needs_keeper() const { return is_needed && !is_kept && client->term().length < wanted; }
  };
  struct KeptLease;
  void keep(KeptLease& each);
  std::shared_ptr<Client> client_for(Millis lease, record::Keeping keeping);
  Result<record::Presence> put(const record::PresenceId& id, Own own, const CallLimits& limit);
  Result<std::optional<Answer>> prove_node(const record::PresenceId& id, Own& own, const CallLimits& limit) const;
  [[nodiscard]] Operation creation(const record::PresenceId& id) const;
  [[nodiscard]] bool has_any_in(const Client& client) const;

  const SharedClient& m_shared;
  const std::shared_ptr<Client> m_client;  // of the requests
  const Layout& m_layout;
  const Clock& m_clock;
  std::map<record::PresenceId, Own> m_own;  // those that are not known to be gone
  std::uint64_t m_read_connection = 0;
};

}  // namespace rlock::zookeeper
