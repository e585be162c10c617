// SPDX-License-Identifier: Apache-2.0
// Which server: what was typed, what the environment says, and what comes of both.
#pragma once

#include "cli/options/environment.h"
#include "cli/options/options.h"
#include "store/open.h"

#include <memory>

namespace rlock::cli {

inline constexpr const char* server_group = "Server";  // the heading of the options, which rlock help servers explains

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
// For a verb that asks one server alone: what is for several is understood, for the config file may have it, and not shown.
void add_single_server_options(Options& options, RawServer& raw);

// -S, RLOCK_SERVER, REDIS_URL or redis://127.0.0.1:6379, first found wins; several -S, or several URLs with spaces
// between in a variable, are a quorum. The password of each is the one in its URL, else --password-file, RLOCK_PASSWORD,
// REDISCLI_AUTH, else the one in a REDIS_URL that means the same server. Reads that file, no other. The files for TLS are
// those of the options, else of RLOCK_CACERT, RLOCK_CERT and RLOCK_TLS_KEY. Where neither an option nor a variable says
// anything the config file does.
// Faults: usage (the arguments), config (the environment, the password file).
Result<ServerSpec> resolve_server(const RawServer& raw, const Environment& environment);

// A store and what it needs to live, for the verbs that ask and print.
struct OpenedStore {
  std::unique_ptr<BootClock> clock;
  std::unique_ptr<LockStore> store;
  Millis timeout;
  std::string server;  // its URL, without passwords
  [[nodiscard]] CallLimits limit() const { return {clock->now() + timeout, StopToken::never()}; }
  // For a question of many requests, however long they take together.
  [[nodiscard]] PerAnswer per_answer(StopToken stop = StopToken::never()) const
  {
    return {*clock, timeout, {far_future, stop}};
  }
};
Result<OpenedStore> open_server(const RawServer& raw, const Environment& environment);

}  // namespace rlock::cli
