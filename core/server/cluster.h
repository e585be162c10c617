// SPDX-License-Identifier: Apache-2.0
// A Transport to a cluster: each request goes to the master of its slot. A node that gets a request for a slot of another node
// redirects the request (MOVED, ASK). All steps end by the caller's deadline.
#pragma once

#include "server/cluster_nodes.h"
#include "server/transport.h"

#include <optional>

namespace rlock {

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
  void forget() override { m_nodes.forget(); }

 private:
  Result<Reply> final_reply(Result<Reply> reply, const HostPort& node);

  const Clock& m_clock;
  ClusterNodes m_nodes;
  std::optional<HostPort> m_last;  // the node that answered the last call
};

}  // namespace rlock
