// SPDX-License-Identifier: Apache-2.0
// Connects a socket: for net, and for a store whose library speaks on sockets of rlock.
#pragma once

#include "base/defaults.h"
#include "base/fd.h"
#include "base/result.h"
#include "net/endpoint.h"

namespace rlock {

// Connects a non-blocking socket with FD_CLOEXEC. Tries the addresses of a host one after the other, each with its share of the
// time that is left.
//   unreachable  no answer by the deadline, refused, no such socket or host
//   os           the system has too few resources
//   config       the path of the socket is too long
//   interrupted  the stop was requested
//   internal     the endpoint only leads to a server (`local:`, sentinels, a cluster)
Result<Fd> dial(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit);

// The same for a server that is no Redis. The text of an Error lacks the server: "connection refused".
Result<Fd> connect_socket(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit);

}  // namespace rlock
