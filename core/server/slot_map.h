// SPDX-License-Identifier: Apache-2.0
// The slot map of a cluster, and redirections.
#pragma once

#include "base/result.h"
#include "net/reply.h"
#include "server/url.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace rlock {

// "MOVED SLOT HOST:PORT": the slot is there from now on. "ASK SLOT HOST:PORT": for this request only, because the slot
// is being moved.
struct Redirection {
  enum class Kind { moved, ask };
  Kind kind;
  unsigned slot;
  HostPort to;
};

// nullopt for every other reply, also for one that names no valid host. Where the reply has no host, it means the host
// of `asked`, the node that sent it.
std::optional<Redirection> redirection_in(const Reply& reply, const HostPort& asked);

// May be outdated at any time; a node without the slot redirects the request.
class SlotMap {
 public:
  SlotMap() = default;                                 // empty
  SlotMap(const Reply& slots, const HostPort& asked);  // from the answer to CLUSTER SLOTS; invalid parts are left out

  void moved(unsigned slot, const HostPort& to);

  [[nodiscard]] std::optional<HostPort> owner(unsigned slot) const;
  [[nodiscard]] std::set<HostPort> owners() const;
  [[nodiscard]] const std::vector<HostPort>& nodes() const { return m_nodes; }  // masters and replicas

 private:
  struct Range {
    unsigned first;
    unsigned last;
    HostPort owner;
  };
  void add(const Reply& range, const HostPort& asked);
  void add_node(const HostPort& node);

  std::vector<Range> m_ranges;
  std::map<unsigned, HostPort> m_moved;  // after the map was fetched; goes before m_ranges
  std::vector<HostPort> m_nodes;
};

}  // namespace rlock
