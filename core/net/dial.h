// SPDX-License-Identifier: Apache-2.0
// Connects a socket. Private to net.
#pragma once

#include "base/call_limits.h"
#include "base/fd.h"
#include "base/result.h"
#include "net/endpoint.h"

namespace rlock {

// Connects a non-blocking socket with FD_CLOEXEC. Tries the addresses of a host one after the other, each with its share of the
// time that is left. Errors: those of Connection::open.
Result<Fd> dial(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit);

}  // namespace rlock
