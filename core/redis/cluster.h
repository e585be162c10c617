// SPDX-License-Identifier: Apache-2.0
// A Transport to a cluster: each request goes to the master of its slot. A node that gets a request for a slot of another node
// redirects the request (MOVED, ASK). All steps end by the caller's deadline.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "redis/connection.h"
#include "redis/slot_map.h"
#include "redis/transport.h"

namespace rlock {

// The nodes of a cluster as one client knows them: the slot map, and a connection to each node that got a request. The object
// fetches the slot map on the first use, corrects it by redirections, and fetches it from another node after a failure.

// Not thread-safe; may move between threads.
class ClusterNodes {
 public:
  // `cluster` is of Kind::cluster; `clock` must outlive the object.
  ClusterNodes(Endpoint cluster, const Clock& clock);

  // The master of the key's slot, if it is known; else any node, which redirects the request. An empty key: any node.
  // ErrorCode::config: the server is no cluster.
  Result<HostPort> owner_of(std::string_view key, const CallLimits& limit);

  // An open connection to the node, valid until distrust(node) or forget().
  Result<Connection*> connection_to(const HostPort& node, const CallLimits& limit);
  // The same; if the node cannot be reached, sets `node` to the present owner of the key, if that is another node.
  Result<Connection*> reach(HostPort& node, std::string_view key, const CallLimits& limit);
  // The open connection to the node; nullptr: none is open.
  Connection* connection_if_open(const HostPort& node);
  // A new connection, which the caller owns.
  [[nodiscard]] Result<Connection> open_connection(const HostPort& node, const CallLimits& limit) const;

  // For each master a key that belongs to one of its slots.
  Result<std::vector<std::string>> key_of_each_owner(const CallLimits& limit);

  void follow(const Redirection& redirection);
  // After a failure: drops the connection and the slot map, and asks this node last for the next map.
  void distrust(const HostPort& node);
  void forget();

  [[nodiscard]] Endpoint endpoint_of(const HostPort& node) const;
  [[nodiscard]] std::string shown() const { return m_cluster.shown(); }

 private:
  Result<Done> fetch_map(const CallLimits& limit);
  Result<Done> fetch_map_from(const HostPort& node, const CallLimits& limit);
  void note(const HostPort& node);

  Endpoint m_cluster;
  const Clock& m_clock;
  std::vector<HostPort> m_nodes;  // in the order in which to ask for the map
  std::optional<SlotMap> m_map;
  std::map<HostPort, Connection> m_connections;
};

// Half of the time that is left: a node that does not answer leaves the other half for another node.
CallLimits half_of(const CallLimits& limit, const Clock& clock);

class Cluster final : public Transport {
 public:
  // `clock` must outlive the transport.
  Cluster(Endpoint cluster, const Clock& clock);

  // While a slot is being moved, all nodes may refuse its requests (TRYAGAIN): the transport repeats such a request until the
  // deadline. It does not repeat a request that got no answer. ErrorCode::config: the server is no cluster.
  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                     const CallLimits& limit) override;
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) override;
  // Takes one round trip to all concerned nodes at the same time. Then sends again, one by one, the requests to a node that
  // cannot be reached or that redirects them.
  std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit) override;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;
  Result<std::vector<std::string>> routes(const CallLimits& limit) override;
  [[nodiscard]] bool is_cluster() const override { return true; }
  void drop_connection() override { m_nodes.forget(); }

 private:
  Result<Reply> final_reply(Result<Reply> reply, const HostPort& node);

  const Clock& m_clock;
  ClusterNodes m_nodes;
  std::optional<HostPort> m_last;  // the node that answered the last call
};

}  // namespace rlock
