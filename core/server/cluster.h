// SPDX-License-Identifier: Apache-2.0
// A Transport to a cluster: each request goes to whom its slot belongs to.
//
// What it knows of that it has asked a node at the first call, and asks another one when a node is gone; a node that is
// asked for a slot it has not got says where that is. All within the caller's deadline.
#pragma once

#include "net/connection.h"
#include "server/cluster_map.h"
#include "server/transport.h"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

class Cluster final : public Transport {
 public:
  // `clock` must outlive it.
  Cluster(Endpoint cluster, const Clock& clock);

  // What belongs to a slot that is just being moved may be refused by all for a while: it is asked for again until the
  // deadline. ErrorCode::config: this is no cluster.
  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                     const CallLimits& limit) override;
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) override;
  // One round trip, to all nodes that are concerned at once.
  std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit) override;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;
  Result<std::vector<std::string>> routes(const CallLimits& limit) override;
  [[nodiscard]] bool is_cluster() const override { return true; }
  void forget() override;

 private:
  struct Batch;      // what goes to one node
  struct Receivers;  // connections that listen, so far
  using Indexes = std::vector<std::size_t>;

  Result<std::vector<Batch>> by_node(std::span<const Request> requests, const CallLimits& limit);
  void send(Batch& batch, std::span<const Request> requests, const CallLimits& limit);
  void receive(Batch& batch, std::vector<Result<Reply>>& answers, Indexes& alone, const CallLimits& limit);
  Result<std::size_t> hear(Receivers& receivers, std::span<const std::string_view> channels, const CallLimits& limit);
  Result<std::size_t> receiver_at(Receivers& receivers, const HostPort& node, const CallLimits& limit);

  Result<HostPort> owner_of(std::string_view route_key, const CallLimits& limit);
  Result<Done> learn(const CallLimits& limit);
  Result<ClusterMap> ask_for_map(const HostPort& node, const CallLimits& limit);
  Result<Connection*> link_to(const HostPort& node, const CallLimits& limit);
  Result<Connection*> reach(HostPort& node, std::string_view route_key, const CallLimits& limit);
  [[nodiscard]] Result<Reply> meant(Reply reply, const HostPort& node) const;
  [[nodiscard]] Error in_circles() const;
  void follow(const Redirection& redirection);
  void note(const HostPort& node);
  void distrust(const HostPort& node);

  Endpoint m_cluster;
  const Clock& m_clock;
  std::vector<HostPort> m_nodes;  // whom to ask, who failed last comes last
  std::optional<ClusterMap> m_map;
  std::map<HostPort, Connection> m_links;
  std::optional<HostPort> m_last;  // who answered the last call
};

}  // namespace rlock
