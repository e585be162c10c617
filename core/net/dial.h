// SPDX-License-Identifier: Apache-2.0
// A connected socket within a Limit: non-blocking, CLOEXEC. Private to wire.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "base/stop.h"
#include "net/endpoint.h"

namespace rlock {

// The faults are those of Connection::open. Tries a host's addresses one after the other, each with
// its share of the time that is left.
Result<Fd> dial(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit);

}  // namespace rlock
