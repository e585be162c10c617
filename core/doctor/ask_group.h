// SPDX-License-Identifier: Apache-2.0
// Asks those who lead to a server, or share its keys, about each other. Private to doctor.
#pragma once

#include "doctor/facts.h"
#include "server/transport.h"

#include <string_view>

namespace rlock::doctor {

// `timeout` bounds what each of them takes.
SentinelFacts ask_sentinels(const Endpoint& group, Millis timeout, const Clock& clock);
ClusterFacts ask_cluster(Transport& transport, std::string_view route_key, Millis timeout, const Clock& clock);

// Of all that speak TLS: the server, or its sentinels and who they name, or the nodes of the cluster.
std::vector<CertificateLife> ask_certificates(const Endpoint& endpoint, const Facts& facts, Millis timeout,
                                              const Clock& clock);

}  // namespace rlock::doctor
