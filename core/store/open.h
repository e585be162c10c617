// SPDX-License-Identifier: Apache-2.0
// Opens the LockStore of server URLs. A table has a row for each engine: the scheme of its URLs, and how to open its store.
#pragma once

#include "base/defaults.h"
#include "lock/store.h"
#include "net/endpoint.h"
#include "store/quorum/quorum.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// How the rlocks inside a job reach the servers of its locks.
struct JobServer {
  std::string urls;  // the value of RLOCK_SERVER: with users, without passwords
  // The value of RLOCK_PASSWORD_FILE, an absolute path; empty: the password came from a file that the job cannot read, such as a
  // pipe; nullopt: the password came from no file.
  std::optional<std::string> password_file = std::nullopt;
};

struct ServerSpec {
  std::vector<Endpoint> endpoints;          // one server, or independent servers of which a quorum must agree
  std::string named_by;                     // where the caller names the servers, such as "--server"; for the log
  Millis timeout = default_server_timeout;  // bounds connecting and each answer
  std::string runtime_directory;            // for `local:`: the value of XDG_RUNTIME_DIR
  std::string local_name;                   // for `local:`: the value of RLOCK_LOCAL_NAME
  std::string local_idle;                   // for `local:`: the value of RLOCK_LOCAL_IDLE
  bool starts_local = true;                 // LocalServerOptions::starts
  QuorumRule quorum = QuorumRule::majority;
  bool restart_guard = true;  // several servers: a server that may have lost its data does not count
  std::optional<Millis> restart_guard_for = std::nullopt;   // QuorumPolicy::restart_guard
  std::optional<std::string> password_file = std::nullopt;  // JobServer::password_file

  // The URLs separated by spaces, without users and passwords.
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] JobServer for_job() const;
  // The most open files of a held lock: its connections, and what wakes its threads. Measured with 40 locks: 5 on one server, 7 by
  // Sentinel and on MongoDB, 12.1 on a quorum of three and 17.1 on one of five.
  [[nodiscard]] std::size_t descriptors_of_lock() const;
};

// A row of the table.
struct Engine {
  std::string_view scheme;  // Endpoint::scheme of its URLs
  Result<Endpoint> (*parse)(std::string_view url);
  Result<std::unique_ptr<LockStore>> (*open)(const ServerSpec& server, const Endpoint& endpoint, const Clock& clock,
                                             StopToken stop);
  // What the engine refuses, and what to do instead; empty: it refuses nothing, or only when it is asked.
  std::string_view refuses_sync = {};       // --sync
  std::string_view refuses_quorum = {};     // to be one of several servers
  std::string_view refuses_tls_files = {};  // --cacert, --cert, --tls-key
  // The most connections of a store while a lock is held and renewed, measured: for requests and for messages.
  std::size_t connections = 2;
  // The environment variable in which the server's own tools read a password; empty: none.
  std::string_view password_variable = {};
  std::array<NativeFormat, 2> beside = {};  // whose clients its locks may stand beside
  // What an administrator feeds to the server's own tool, so that `user` may keep locks there. `globs`: locks that stand beside
  // native clients, only where `beside` has etcd. nullptr: the rights are ACL rules of Redis.
  Result<std::string> (*rights)(const Endpoint& endpoint, std::string_view user,
                                std::span<const std::string> globs) = nullptr;
};

// The row of the endpoint's engine.
const Engine& engine_of(const Endpoint& endpoint);

// Adds a row for the rest of the process. Only tests call this. Not thread-safe.
void add_engine(const Engine& engine);

// Parses the URL of one server by the engine of its scheme; the parser of Redis takes a URL with an unknown scheme, or without
// one. Errors: ErrorCode::usage; the text quotes the URL without its password.
Result<Endpoint> parse_server(std::string_view url);

// How the URL of each kind of server begins.
std::vector<std::string> url_beginnings();

// Whether the URL has a password, be it that of the sentinels, or may have one where it is invalid.
bool may_have_password(std::string_view url);

// Opens the store. Starts the private server of `local:`; connects to no other server.
// Ownership: the caller owns the store; `clock` must outlive the store.
// Threads: a store on several servers has a thread for each of them.
// Errors: those of the engine's `open`; ErrorCode::os: no thread or descriptor is left.
Result<std::unique_ptr<LockStore>> open_store(const ServerSpec& server, const Clock& clock, StopToken stop);

}  // namespace rlock
