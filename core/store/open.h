// SPDX-License-Identifier: Apache-2.0
// From "which server" to a store that locks can be taken in.
#pragma once

#include "base/defaults.h"
#include "lock/store.h"
#include "server/transport.h"
#include "server/url.h"
#include "store/quorum/quorum.h"

#include <memory>
#include <string>
#include <vector>

namespace rlock {

struct ServerSpec {
  std::vector<Endpoint> endpoints;          // one, or several independent ones of which a quorum has to agree
  Millis timeout = default_server_timeout;  // bounds connecting and every answer
  std::string runtime_directory;            // for Endpoint::Kind::local: the value of XDG_RUNTIME_DIR
  std::string local_name;                   // for Endpoint::Kind::local: the value of RLOCK_LOCAL_NAME
  QuorumRule quorum = QuorumRule::majority;
  bool restart_guard = true;  // of several servers: one that may have forgotten locks does not count,
  std::optional<Millis> restart_guard_for = std::nullopt;  // for that long; missing: the longest ttl in use

  // All of them, as RLOCK_SERVER takes them: without passwords, a space between.
  [[nodiscard]] std::string shown() const;
};

// Starts the local server where that is what is asked for; else touches no network yet. Several servers have a thread each
// for as long as the store lives. `clock` must outlive the store.
Result<std::unique_ptr<LockStore>> open_store(const ServerSpec& server, const Clock& clock, StopToken stop);

// The way to one of them, for who asks it other things than locks. The same of `clock` and of the local server.
Result<std::unique_ptr<Transport>> open_transport(const ServerSpec& server, Endpoint endpoint, const Clock& clock,
                                                  StopToken stop);

}  // namespace rlock
