// SPDX-License-Identifier: Apache-2.0
// The end of a private server that no process uses. Private to server.
//
// A client holds a shared lock (flock(2)) on the directory of the server from before it looks for the server until it is
// connected; see local_entry. The server is ended under the exclusive lock, after it has said that it has no connection but this
// one and that none came since it was last asked. So no client finds a server and then no longer reaches it. It also ends
// under the lock of those that start a server, so that the next server begins when it is gone.
#pragma once

#include "base/call_limits.h"
#include "base/fd.h"
#include "base/result.h"

#include <string>

#include <sys/types.h>

namespace rlock {

// What decides when the server ends. Made before the fork, because another thread may hold the lock of malloc.
struct IdleRule {
  Millis time;             // without a connection and without a held lock; 0: the server never ends by itself
  std::string lock_query;  // the request that the server answers with 0 where no lock is held
};

// Ends the server, a child of this process that works in the working directory of this process. Returns when the server has
// ended, for whichever reason. Async-signal-safe calls only.
void end_when_idle(pid_t server, const IdleRule& rule);

// The request `EVAL SCRIPT 0`.
std::string eval_request(const std::string& script);

// While the descriptor is open the server in this directory does not end by itself. No descriptor: there is no such directory.
// Errors: `unreachable` when the server is ending until the deadline; `os`.
Result<Fd> local_entry(const std::string& directory, const Clock& clock, const CallLimits& limit);

}  // namespace rlock
