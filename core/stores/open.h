// SPDX-License-Identifier: Apache-2.0
// Opens the LockStore of server URLs, each by the row of its engine (stores/engine.h).
#pragma once

#include "base/defaults.h"
#include "lock/store.h"
#include "net/endpoint.h"
#include "stores/engine.h"
#include "stores/quorum/quorum.h"

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
  std::string login = {};                                   // with_login: the user, and where its password stands

  // The URLs separated by spaces, without users and passwords.
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] JobServer for_job() const;
};

// What an error says of an engine that was left out of the build.
inline constexpr std::string_view stores_option =
    "build rlock with it in -DRLOCK_STORES, or give another server with -S";

// The engines of this program, Redis first.
std::span<const Engine* const> built_engines();

// The row of the endpoint's engine.
const Engine& engine_of(const Endpoint& endpoint);

// The engine of the store whose clients these are; nullptr: it is not built.
const Engine* engine_beside(NativeFormat format);

// Adds a row for the rest of the process. Only tests call this. Not thread-safe.
void add_engine(const Engine& engine);

// Parses the URL of one server by the engine of its scheme; the parser of Redis takes a URL with an unknown scheme, or without
// one. Errors: ErrorCode::usage; the text quotes the URL without its password. ErrorCode::config: the engine is not built, or misses
// its library.
Result<Endpoint> parse_server(std::string_view url);

// The engine that a word of a user means: its name, its manual page, the scheme of its URLs, or "sentinel", "valkey" and the like for
// Redis; nullptr: there is none, or it is not built.
const Engine* engine_named(std::string_view word);

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
