// SPDX-License-Identifier: Apache-2.0
// A Transport to a cluster: each request goes to the master of its slot. The node that a request is sent to by mistake
// redirects it (MOVED, ASK). All within the caller's deadline.
#pragma once

#include "server/cluster_nodes.h"
#include "server/transport.h"

#include <optional>

namespace rlock {

class Cluster final : public Transport {
 public:
  // `clock` must outlive it.
  Cluster(Endpoint cluster, const Clock& clock);

  // While a slot is being moved, all nodes may refuse its requests (TRYAGAIN): they are repeated until the deadline. A
  // request that was sent and not answered is not repeated. ErrorCode::config: this is no cluster.
  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                     const CallLimits& limit) override;
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) override;
  // One round trip to all nodes concerned at once. Requests to a node that cannot be reached, or that redirects them,
  // are called one by one afterwards.
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
