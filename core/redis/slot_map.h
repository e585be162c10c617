// SPDX-License-Identifier: Apache-2.0
// The slot map of a cluster, and redirections.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>
#include "base/result.h"
#include "redis/codec.h"
#include "redis/url.h"

namespace rlock {

// "MOVED SLOT HOST:PORT": the slot has moved to that node. "ASK SLOT HOST:PORT": that node serves this one request, because the
// slot is being moved.
struct Redirection {
  enum class Kind { moved, ask };
  Kind kind;
  unsigned slot;
  HostPort to;
};

// The redirection in a reply; nullopt: the reply is none, or names no valid host. A reply without a host means the host of
// `asked`, the node that sent the reply.
std::optional<Redirection> redirection_in(const Reply& reply, const HostPort& asked);

// The owner of each slot. The map may be outdated at any time; then a node redirects the request.
class SlotMap {
 public:
  SlotMap() = default;                                 // empty
  SlotMap(const Reply& slots, const HostPort& asked);  // reads the answer to CLUSTER SLOTS, without its invalid parts

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
  std::map<unsigned, HostPort>
      m_moved;  // slots that have moved since the map was fetched; takes precedence over m_ranges
  std::vector<HostPort> m_nodes;
};

// The slot of a cluster to which a key or a channel belongs.

constexpr unsigned slot_count = 16384;

// The slot of the text between the first '{' and the next '}', or of the whole name if there is no such text.
unsigned slot_of(std::string_view name);

}  // namespace rlock
