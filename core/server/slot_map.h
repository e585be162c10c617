// SPDX-License-Identifier: Apache-2.0
// What a cluster says about itself: who has which slots, and where to go instead.
#pragma once

#include "base/result.h"
#include "net/reply.h"
#include "server/url.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace rlock {

// "MOVED SLOT HOST:PORT": it is there from now on. "ASK …": this request only, for the slot is just being moved there.
struct Redirection {
  enum class Kind { moved, ask };
  Kind kind;
  unsigned slot;
  HostPort to;
};

// nullopt for every other reply. A node that does not know its own name means the host at which it was `asked`.
std::optional<Redirection> redirection_in(const Reply& reply, const HostPort& asked);

// May be out of date at any time; who has not got a slot says so.
class SlotMap {
 public:
  SlotMap() = default;                                 // nothing is known
  SlotMap(const Reply& slots, const HostPort& asked);  // an answer to CLUSTER SLOTS; what makes no sense is left out

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
  std::map<unsigned, HostPort> m_moved;  // since then; these win
  std::vector<HostPort> m_nodes;
};

}  // namespace rlock
