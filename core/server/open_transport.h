// SPDX-License-Identifier: Apache-2.0
// From the endpoint of a Redis URL to the Transport that leads there.
#pragma once

#include "server/transport.h"
#include "server/url.h"

#include <memory>
#include <string>

namespace rlock {

// What the private server of `local:` needs to be found or started.
struct LocalServerOptions {
  Millis timeout;                 // to start it
  std::string runtime_directory;  // XDG_RUNTIME_DIR
  std::string name;               // RLOCK_LOCAL_NAME
  std::string idle;               // RLOCK_LOCAL_IDLE
  std::string any_lock;           // as LocalSpec::any_lock
  bool starts = true;             // false: a server that does not run is unreachable
};

// The caller owns the transport; `clock` must outlive it. Starts the private server of `local:`, unless told not
// to; connects to no other server. Errors: those of local_server; `config` where the endpoint belongs to another engine.
Result<std::unique_ptr<Transport>> open_transport(const Endpoint& endpoint, const LocalServerOptions& local,
                                                  const Clock& clock, StopToken stop);

}  // namespace rlock
