// SPDX-License-Identifier: Apache-2.0
// Which servers, and how rlock reaches them: the options, and the ServerSpec that is made of them.
#pragma once

#include "cli/options/environment.h"
#include "cli/options/options.h"
#include "store/open.h"

#include <memory>

namespace rlock::cli {

inline constexpr const char* server_group = "Server";  // heading of the options; rlock help servers describes them

struct RawServer {
  std::vector<std::string> urls;
  Text timeout;
  Text password_file;
  Text cacert;
  Text cert;
  Text tls_key;
  Text quorum;
  Text restart_guard;
  bool no_restart_guard = false;
};

void add_server_options(Options& options, RawServer& raw);
// For a verb that asks a single server: the options for several servers are parsed, because the config file may have them, and
// help hides them.
void add_single_server_options(Options& options, RawServer& raw);

// Options come before variables, and variables before the config file; but the server of the file comes before that of
// REDIS_URL. Reads the password file, and no other file.
// ErrorCode::usage: an option is wrong. ErrorCode::config: a variable, a setting or the password file is wrong.
Result<ServerSpec> resolve_server(const RawServer& raw, const Environment& environment);

// A store with the clock that it needs, for verbs that ask a server and print the answer.
struct OpenedStore {
  std::unique_ptr<BootClock> clock;
  std::unique_ptr<LockStore> store;
  Millis timeout;
  std::string server;  // its URL, without passwords
  [[nodiscard]] CallLimits limit() const { return {clock->now() + timeout, StopToken::never()}; }
  // For a question of many requests: each answer has the time limit, and all together have none.
  [[nodiscard]] PerAnswer per_answer(StopToken stop = StopToken::never()) const
  {
    return {*clock, timeout, {far_future, stop}};
  }
};
Result<OpenedStore> open_server(const RawServer& raw, const Environment& environment);

}  // namespace rlock::cli
