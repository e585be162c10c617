// SPDX-License-Identifier: Apache-2.0
#include "doctor/ask_group.h"

#include "base/parallel_query.h"
#include "net/connection.h"
#include "server/group.h"

#include <algorithm>

namespace rlock::doctor {
namespace {

std::vector<HostPort> known_nodes(const Endpoint& cluster, const Facts& facts)
{
  std::vector<HostPort> nodes = cluster.nodes;
  if (facts.cluster && facts.cluster->owners) {
    for (const SlotOwner& owner : *facts.cluster->owners) {
      if (!owner.at.host.empty() && std::find(nodes.begin(), nodes.end(), owner.at) == nodes.end()) {
        nodes.push_back(owner.at);
      }
    }
  }
  return nodes;
}

std::vector<Endpoint> servers_with_tls(const Endpoint& endpoint, const Facts& facts)
{
  std::vector<Endpoint> all;
  if (endpoint.is_cluster()) {
    for (const HostPort& node : known_nodes(endpoint, facts)) {
      all.push_back(server_at(endpoint, node));
    }
  } else if (endpoint.is_sentinel_group()) {
    for (const HostPort& at : endpoint.sentinels.hosts) {
      all.push_back(sentinel_at(endpoint, at));
    }
    for (const NamedMaster& master : facts.sentinels ? facts.sentinels->masters : std::vector<NamedMaster>()) {
      all.push_back(server_at(endpoint, master.at));
    }
  } else {
    all.push_back(endpoint);
  }
  std::erase_if(all, [](const Endpoint& each) { return !each.tls; });
  return all;
}

// The TLS handshake alone shows the certificate.
Endpoint without_login(Endpoint endpoint)
{
  endpoint.user.clear();
  endpoint.password.clear();
  endpoint.password_file.clear();
  endpoint.db = 0;
  endpoint.must_be_master = false;
  return endpoint;
}

}  // namespace

std::vector<CertificateLife> ask_certificates(const Endpoint& endpoint, const Facts& facts, Millis timeout,
                                              const Clock& clock)
{
  const CallLimits limit{clock.now() + timeout, StopToken::never()};
  return parallel_query(
      servers_with_tls(endpoint, facts), clock, limit, [&](const Endpoint& server, const CallLimits& until) {
        const auto connection = Connection::open(without_login(server), clock, until);
        const auto left = connection ? connection->certificate_left() : std::nullopt;
        return CertificateLife{server.shown(), left         ? Result(*left)
                                               : connection ? Error{ErrorCode::internal, "it shows no certificate"}
                                                            : connection.error()};
      });
}

}  // namespace rlock::doctor
