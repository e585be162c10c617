// SPDX-License-Identifier: Apache-2.0
#include "cli/options/server.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "cli/options/access.h"
#include "cli/options/endpoints.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr DurationRule timeout_rule{"--server-timeout", Millis{1}, std::chrono::hours{24}, default_server_timeout};
constexpr DurationRule guard_rule{"--restart-guard", Millis{0}, std::chrono::hours{30 * 24}, "5m"};
constexpr std::array quorum_choices{Choice<QuorumRule>{"majority", QuorumRule::majority},
                                    Choice<QuorumRule>{"all", QuorumRule::all}};

Result<Done> apply_quorum(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  if (raw.restart_guard) {
    const Result<Done> given = assign(resolve_duration(*raw.restart_guard, guard_rule), server.restart_guard_for);
    if (!given) {
      return given;
    }
  }
  server.restart_guard = !raw.no_restart_guard && server.restart_guard_for != Millis{0};
  const Setting* configured = server.endpoints.size() > 1 ? environment.setting("--quorum") : nullptr;
  if (!raw.quorum && configured == nullptr) {
    return Done{};
  }
  const std::string& word = raw.quorum ? *raw.quorum : configured->values.front();
  const Result<QuorumRule> rule = resolve_choice(word, "--quorum", quorum_choices);
  if (!rule) {
    return raw.quorum ? rule.error() : Error{ErrorCode::config, configured->where + ": " + rule.error().text};
  }
  if (server.endpoints.size() == 1) {
    return usage("--quorum is for several servers (try -S redis://a -S redis://b -S redis://c)");
  }
  server.quorum = *rule;
  return Done{};
}

std::string url_help()
{
  return "where the locks are kept, such as redis://host:6379 (else RLOCK_SERVER, the config file, REDIS_URL, " +
         std::string(default_url) + ")";
}

void add_quorum_options(Options options, RawServer& raw)
{
  options.text("--quorum", raw.quorum, "majority|all",
               "with several servers: how many must grant the lock; permits may need more than a majority "
               "(majority)");
  options.text("--restart-guard", raw.restart_guard, "DUR",
               "with several servers: a server that is new or lost its data counts after DUR (the longest ttl in use)");
  options.flag("--no-restart-guard", raw.no_restart_guard,
               "count such a server at once, because every server keeps its data when it restarts");
}

void add_access_options(Options& options, RawServer& raw)
{
  options.text("--password-file", raw.password_file, "FILE",
               "file whose first line is the password (else RLOCK_PASSWORD, RLOCK_PASSWORD_FILE, REDISCLI_AUTH)");
  options.text("--cacert", raw.cacert, "FILE",
               "CA certificates that the server's certificate must be signed by (else RLOCK_CACERT, the system's)");
  options.text("--cert", raw.cert, "FILE", "certificate that rlock shows to the server (else RLOCK_CERT, none)");
  options.text("--tls-key", raw.tls_key, "FILE",
               "private key of that certificate (else RLOCK_TLS_KEY, in the same file)");
}

}  // namespace

void add_server_options(Options& options, RawServer& raw)
{
  Options group = options.in(server_group);
  group.texts("-S,--server", raw.urls, "URL", [] {
    return url_help() + "; given several times: independent servers, of which a quorum must grant the lock";
  });
  group.text("--server-timeout", raw.timeout, "DUR", [] {
    return "time limit for connecting and for each answer (" + show(default_server_timeout) +
           "; with several servers " + show(default_quorum_timeout) + " for each)";
  });
  add_quorum_options(group, raw);
  add_access_options(group, raw);
}

void add_single_server_options(Options& options, RawServer& raw)
{
  Options group = options.in(server_group);
  group.texts("-S,--server", raw.urls, "URL", url_help);
  group.text("--server-timeout", raw.timeout, "DUR",
             {"time limit for connecting and for each answer", default_server_timeout});
  add_quorum_options(options.in(""), raw);
  add_access_options(group, raw);
}

Result<ServerSpec> resolve_server(const RawServer& raw, const Environment& environment)
{
  Result<NamedEndpoints> named = resolve_endpoints(raw.urls, environment);
  if (!named) {
    return named.error();
  }
  ServerSpec server;
  server.endpoints = std::move(named->endpoints);
  server.named_by = std::move(named->named_by);
  server.timeout = server.endpoints.size() > 1 ? default_quorum_timeout : server.timeout;
  if (raw.timeout) {
    const Result<Done> given = assign(resolve_duration(*raw.timeout, timeout_rule), server.timeout);
    if (!given) {
      return given.error();
    }
  }
  for (const auto apply : {apply_quorum, apply_tls, apply_passwords, apply_sentinel_passwords}) {
    const Result<Done> applied = apply(raw, environment, server);
    if (!applied) {
      return applied.error();
    }
  }
  server.runtime_directory = environment.value("XDG_RUNTIME_DIR");
  server.local_name = environment.value("RLOCK_LOCAL_NAME");
  server.local_idle = environment.value("RLOCK_LOCAL_IDLE");
  return server;
}

Result<OpenedStore> open_server(const RawServer& raw, const Environment& environment)
{
  const Result<ServerSpec> server = resolve_server(raw, environment);
  if (!server) {
    return server.error();
  }
  auto clock = std::make_unique<BootClock>();
  Result<std::unique_ptr<LockStore>> store = open_store(*server, *clock, StopToken::never());
  if (!store) {
    return store.error();
  }
  return OpenedStore{std::move(clock), *std::move(store), server->timeout, server->shown()};
}

}  // namespace rlock::cli
