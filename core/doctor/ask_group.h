// SPDX-License-Identifier: Apache-2.0
// Asks the sentinels of a server, and the nodes of a cluster, about each other. Private to doctor.
#pragma once

#include <string_view>
#include "doctor/facts.h"
#include "redis/transport.h"

namespace rlock::doctor {

// `timeout` bounds each answer.
SentinelFacts ask_sentinels(const Endpoint& group, Millis timeout, const Clock& clock);
ClusterFacts ask_cluster(Transport& transport, std::string_view route_key, Millis timeout, const Clock& clock);

// The lives of the certificates of all servers that use TLS: the server; or its sentinels and the masters that they name; or the
// nodes of the cluster.
std::vector<CertificateLife> ask_certificates(const Endpoint& endpoint, const Facts& facts, Millis timeout,
                                              const Clock& clock);

}  // namespace rlock::doctor
