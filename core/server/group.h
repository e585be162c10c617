// SPDX-License-Identifier: Apache-2.0
// The single servers behind an endpoint that leads to several.
#pragma once

#include "net/reply.h"
#include "server/url.h"

#include <optional>

namespace rlock {

// The address in the answer {host, port} of a sentinel; nullopt: the sentinel knows no master of that name, or
// names no valid host.
std::optional<HostPort> master_address_in(const Reply& reply);

// One sentinel of `group`, which is of Kind::sentinel, with the user, password and TLS of the sentinels.
Endpoint sentinel_at(const Endpoint& group, const HostPort& at);

// The server at `at`: a node of a cluster, or the master that sentinels name, which must say that it is a master.
Endpoint server_at(const Endpoint& group, const HostPort& at);

}  // namespace rlock
