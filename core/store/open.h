// SPDX-License-Identifier: Apache-2.0
// From server URLs to a LockStore. A table has one row for each engine: the scheme of its URLs, and how to open its store.
#pragma once

#include "base/defaults.h"
#include "lock/store.h"
#include "server/open_transport.h"
#include "store/quorum/quorum.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// How the rlocks inside a job reach the servers of its locks.
struct JobServer {
  std::string urls;  // the value of RLOCK_SERVER: with users, without passwords
  // The value of RLOCK_PASSWORD_FILE, absolute; empty: the password came from a file that the job cannot read, such as a pipe;
  // nullopt: it came from no file.
  std::optional<std::string> password_file = std::nullopt;
};

struct ServerSpec {
  std::vector<Endpoint> endpoints;          // one server, or independent servers of which a quorum has to agree
  std::string named_by;                     // where the caller names them, such as "--server"; for the log
  Millis timeout = default_server_timeout;  // bounds connecting and each answer
  std::string runtime_directory;            // for `local:`: the value of XDG_RUNTIME_DIR
  std::string local_name;                   // for `local:`: the value of RLOCK_LOCAL_NAME
  std::string local_idle;                   // for `local:`: the value of RLOCK_LOCAL_IDLE
  bool starts_local = true;                 // for `local:`: false: a server that does not run is unreachable
  QuorumRule quorum = QuorumRule::majority;
  bool restart_guard = true;  // several servers: a server that may have lost its data does not count
  std::optional<Millis> restart_guard_for = std::nullopt;   // how long it does not; nullopt: the longest ttl in use
  std::optional<std::string> password_file = std::nullopt;  // as JobServer::password_file

  // The URLs separated by spaces, without users and passwords.
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] JobServer for_job() const;
};

// A row of the table.
struct Engine {
  std::string_view scheme;  // Endpoint::scheme of its URLs
  Result<Endpoint> (*parse)(std::string_view url);
  Result<std::unique_ptr<LockStore>> (*open)(const ServerSpec& server, const Endpoint& endpoint, const Clock& clock,
                                             StopToken stop);
};

// For tests: adds a row for the rest of the process (others are rows of `engines`). Not thread-safe: call it first.
void add_engine(const Engine& engine);

// Parses the URL of one server by the engine of its scheme. Redis parses the rest: an unknown scheme, or none.
// Errors are ErrorCode::usage and quote the URL without its password.
Result<Endpoint> parse_server(std::string_view url);

// The caller owns the store; `clock` must outlive it. Starts the private server of `local:`; connects to no other server.
// Several servers have a thread each for as long as the store lives.
Result<std::unique_ptr<LockStore>> open_store(const ServerSpec& server, const Clock& clock, StopToken stop);

// A connection to one Redis server of `server`, for requests that no store makes. Errors: as open_store;
// ErrorCode::config if the endpoint belongs to another engine.
Result<std::unique_ptr<Transport>> open_transport(const ServerSpec& server, const Endpoint& endpoint,
                                                  const Clock& clock, StopToken stop);

}  // namespace rlock
