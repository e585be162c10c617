// SPDX-License-Identifier: Apache-2.0
// The presences of clients in etcd: for each a lease, and a key that ends with it. Private to stores/etcd.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>
#include "engine/presence.h"
#include "stores/etcd/etcd_connection.h"
#include "stores/etcd/etcd_layout.h"
#include "stores/etcd/etcd_listener.h"

namespace rlock::etcd {

// The number of a lease is random and never comes back.
std::int64_t draw_lease(Rng& rng);
std::string name_of_lease(std::int64_t lease);  // 16 hexadecimal digits, which are the id of the presence
std::optional<std::int64_t> lease_in(const record::PresenceId& id);

// The lease in seconds, as etcd counts.
std::int64_t seconds_of(Millis lease);

// Threads: as Connection. Both must outlive it. A client that has no presence any longer is not listed as a listener either, until
// its next request.
class EtcdPresences final : public record::Presences {
 public:
  EtcdPresences(Listeners& shared, const Clock& clock)
      : m_shared(shared),
        m_connection(shared.connection()),
        m_layout(shared.layout()),
        m_clock(clock),
        m_rng(shared.rng())
  {
  }

  // A record was read in this revision: an answer of gone() from an earlier one is an error.
  void record_was_read_at(std::int64_t revision) { m_read_at = revision; }

  // Grants the lease. The key comes with the first commit that needs the presence.
  Result<record::Presence> make(Millis lease, record::Keeping keeping, const CallLimits& limit) override;
  Result<record::Proof> prove(const record::PresenceId& id, const CallLimits& limit) override;
  Result<std::vector<record::PresenceId>> gone(std::span<const record::PresenceId> ids,
                                               const CallLimits& limit) override;
  Result<Done> remove(const record::PresenceId& id, const CallLimits& limit) override;

  // Adds to a transaction that it needs these presences, and puts those of this client that have no key yet. Asks etcd first
  // where the answer to such a transaction was lost.
  Result<Done> need(std::span<const record::PresenceId> ids, Txn& txn, const CallLimits& limit);
  // The transaction happened, in this revision.
  void committed(std::span<const record::PresenceId> ids, std::int64_t revision);
  // Whether the lease of one of these that need() wanted to put is over.
  Result<bool> has_lost_lease(std::span<const record::PresenceId> ids, const CallLimits& limit);
  // The longest lease that was made.
  [[nodiscard]] Millis longest() const { return m_longest; }

 private:
  struct Own {
    std::int64_t lease;
    std::int64_t create_revision = 0;  // of its key; 0: not known to exist
    bool is_sent = false;              // a transaction with the key may have happened
  };
  Result<Done> find_out(const record::PresenceId& id, Own& own, const CallLimits& limit);
  Result<std::optional<record::Proof>> try_to_prove(const record::PresenceId& id, Own& own, const CallLimits& limit);

  Listeners& m_shared;
  Connection& m_connection;
  const Layout& m_layout;
  const Clock& m_clock;
  Rng& m_rng;
  std::map<record::PresenceId, Own> m_own;
  Millis m_longest{0};
  std::int64_t m_read_at = 0;
};

// The transaction of a proof. It succeeds if the key of the presence has this create revision; 0: if there is no key. Else its answer
// has the key.
//
// It changes nothing, but etcd commits it as a write, because it has a Delete. A read would prove less: until 3.4.42, 3.5.28 and 3.6.9
// a leader that was stopped and deposed could answer a linearizable read with its old state (etcd-io/etcd #20418). A Put would be
// refused when the space of etcd is used up; a Delete is not.
Txn commit_of_proof(const std::string& key, std::int64_t create_revision);

// The proof, as a pure function. nullopt: nothing is proven, because another leader may have come between the two answers.
//   kept       the answer to the keep-alive, which was sent first, at `sent_at`
//   committed  the answer to commit_of_proof, sent after it on the same connection
//   create_revision  of the key, as this client knows it; 0: no transaction has put the key yet
std::optional<record::Proof> proof_of(const LeaseAnswer& kept, const TxnAnswer& committed, std::int64_t create_revision,
                                      Instant sent_at);

}  // namespace rlock::etcd
