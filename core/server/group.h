// SPDX-License-Identifier: Apache-2.0
// One of the servers behind an endpoint that leads to several.
#pragma once

#include "net/reply.h"
#include "server/url.h"

#include <optional>

namespace rlock {

// Whom a sentinel names, by its answer {host, port}; nullopt: it knows nobody of that name.
std::optional<HostPort> named_in(const Reply& reply);

// `group` is of Kind::sentinel; who is called as its sentinels want it.
Endpoint sentinel_at(const Endpoint& group, const HostPort& at);

// A node of a cluster; or the master whom sentinels name, who has to say himself that he is one.
Endpoint server_at(const Endpoint& group, const HostPort& at);

}  // namespace rlock
