// SPDX-License-Identifier: Apache-2.0
// Three servers that agree by majority, and the sessions of their clients, which expire by a monotonic clock. A member that is cut
// off from the others goes on to answer keep-alives from its memory; so does a leader that stood still and was replaced, until it
// learns of that. Both is what ZooKeeper and etcd do (engine/presence.h has what was measured).
#pragma once

#include "engine/presence.h"
#include "sim/world.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace rlock::sim {

class Members {
 public:
  // `world` must outlive it.
  Members(World& world, std::uint64_t seed);

  static constexpr int count = 3;
  int any() { return static_cast<int>(m_rng.up_to(count - 1)); }

  // When a request that has arrived at this member is served. nullopt: never.
  std::optional<Nanos> served_at(int member);
  std::optional<Nanos> keep_alive_served_at(int member, const record::PresenceId& id);
  // When a message to a client that is connected to this member is sent.
  [[nodiscard]] Nanos speaks_at(int member) const;

  // Of requests that are served.
  void make(const record::PresenceId& id, Nanos length);
  struct Answer {
    bool lives;
    std::uint64_t term;  // in which the leader was elected that has answered; 0: no leader has
  };
  Answer keep_alive(int member, const record::PresenceId& id);
  Answer look(const record::PresenceId& id);
  void remove(const record::PresenceId& id) { m_sessions.erase(id); }
  // The node or key of the presence. Another client sees the presence from then on.
  void put(const record::PresenceId& id);

  [[nodiscard]] bool has_session(const record::PresenceId& id);
  [[nodiscard]] bool is_seen(const record::PresenceId& id);  // what Presences::gone goes by
  [[nodiscard]] std::set<record::PresenceId> all_seen();
  // For how long the presence lasts at least; 0: it is gone.
  [[nodiscard]] Nanos lasts_for(const record::PresenceId& id);

  // Faults. At most one member at a time is away from the others.
  void cut_off(Nanos lasts);                  // any of them
  void stop_leader(Nanos lasts, Nanos more);  // until it learns that another one leads
  void all_stopped();
  void all_started();
  void lose_sessions() { m_sessions.clear(); }

 private:
  struct Member {
    Nanos stands_still_until = 0;
    Nanos away_until = 0;  // from the majority
    std::uint64_t term = 0;
    std::set<record::PresenceId> remembered = {};
  };
  struct Session {
    Nanos ends;
    Nanos length;
    bool is_put = false;
  };
  [[nodiscard]] Member& at(int member) { return m_members[static_cast<std::size_t>(member)]; }
  [[nodiscard]] bool is_away(int member) const;
  [[nodiscard]] int member_to_leave(int wanted) const;
  void leave(int member, Nanos stands_still, Nanos away);
  void elect(Nanos takes);
  void end_expired();

  World& m_world;
  SeededRng m_rng;
  std::vector<Member> m_members = std::vector<Member>(count);
  std::map<record::PresenceId, Session> m_sessions;
  int m_leader = 0;
  std::uint64_t m_term = 1;
  Nanos m_elected_at = 0;  // until then nobody leads
  bool m_is_up = true;
};

}  // namespace rlock::sim
