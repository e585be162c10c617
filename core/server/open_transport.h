// SPDX-License-Identifier: Apache-2.0
// Opens the Transport to the endpoint of a Redis URL.
#pragma once

#include "server/transport.h"
#include "server/url.h"

#include <memory>
#include <string>

namespace rlock {

// How to find and start the private server of `local:`.
struct LocalServerOptions {
  Millis timeout;                 // the time limit for its start
  std::string runtime_directory;  // XDG_RUNTIME_DIR
  std::string name;               // RLOCK_LOCAL_NAME
  std::string idle;               // RLOCK_LOCAL_IDLE
  std::string any_lock;           // LocalSpec::any_lock
  bool starts = true;             // false: a server that does not run is unreachable
};

// Opens the transport. Starts the private server of `local:` if LocalServerOptions::starts; connects to no other server.
// Ownership: the caller owns the transport; `clock` must outlive it.
// Errors: those of local_server; ErrorCode::config: the endpoint belongs to another engine.
Result<std::unique_ptr<Transport>> open_transport(const Endpoint& endpoint, const LocalServerOptions& local,
                                                  const Clock& clock, StopToken stop);

}  // namespace rlock
