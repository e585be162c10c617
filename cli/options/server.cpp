// SPDX-License-Identifier: Apache-2.0
#include "cli/options/server.h"

#include "base/password_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <system_error>

namespace rlock::cli {
namespace {

constexpr DurationRule timeout_rule{"--server-timeout", Millis{1}, std::chrono::hours{24}, "5s"};
constexpr DurationRule guard_rule{"--restart-guard", Millis{0}, std::chrono::hours{30 * 24}, "5m"};
constexpr Millis quorum_timeout{500};  // a server that is slow shall not cost much: the others may be enough
constexpr std::array quorum_choices{Choice<QuorumRule>{"majority", QuorumRule::majority},
                                    Choice<QuorumRule>{"all", QuorumRule::all}};
constexpr std::string_view default_url = "redis://127.0.0.1:6379";

// The error says where the URL stands, for a bad one in the environment is hard to find otherwise.
Result<Endpoint> endpoint_from(std::string_view url, const std::string& source, ErrorCode code)
{
  Result<Endpoint> endpoint = parse_server(url);
  if (!endpoint) {
    return Error{code, source + ": " + endpoint.error().text};
  }
  return endpoint;
}

// Independent masters, each of which has one vote.
Result<Done> can_be_a_quorum(const std::vector<Endpoint>& endpoints, const std::string& source, ErrorCode code)
{
  for (auto one = endpoints.begin(); one != endpoints.end() && endpoints.size() > 1; ++one) {
    if (one->is_private()) {
      return Error{code, source +
                             ": local: is one server for one host and no part of a quorum (give redis:// or "
                             "unix:// URLs)"};
    }
    if (one->is_cluster()) {
      return Error{code, source +
                             ": a cluster is no part of a quorum (give all its nodes in one URL, "
                             "redis+cluster://host:7000,host:7001)"};
    }
    const auto same = std::find_if(std::next(one), endpoints.end(),
                                   [&](const Endpoint& other) { return one->is_same_server(other); });
    if (same != endpoints.end()) {
      return Error{code, source + ": " + one->shown() + " and " + same->shown() +
                             " are the same server, which cannot vote twice"};
    }
  }
  return Done{};
}

Result<std::vector<Endpoint>> endpoints_from(const std::vector<std::string>& urls, const std::string& source,
                                             ErrorCode code)
{
  std::vector<Endpoint> endpoints;
  for (const std::string& url : urls) {
    auto endpoint = endpoint_from(url, source, code);
    if (!endpoint) {
      return endpoint.error();
    }
    endpoints.push_back(*std::move(endpoint));
  }
  const auto fit = can_be_a_quorum(endpoints, source, code);
  return fit ? Result(std::move(endpoints)) : Result<std::vector<Endpoint>>(fit.error());
}

std::vector<std::string> argv_of(std::string_view text)
{
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

Result<std::vector<Endpoint>> resolve_endpoints(const RawServer& raw, const Environment& environment)
{
  if (!raw.urls.empty()) {
    return endpoints_from(raw.urls, "--server", ErrorCode::usage);
  }
  for (const char* name : {"RLOCK_SERVER", "REDIS_URL"}) {
    const auto urls = argv_of(environment.value(name));
    if (!urls.empty()) {
      return endpoints_from(urls, name, ErrorCode::config);
    }
  }
  if (const Setting* configured = environment.setting("--server")) {
    return endpoints_from(configured->values, configured->where + ": server", ErrorCode::config);
  }
  return endpoints_from({std::string(default_url)}, "--server", ErrorCode::internal);
}

std::string_view password_of(const Environment& environment)
{
  const std::string_view ours = environment.value("RLOCK_PASSWORD");
  return ours.empty() ? environment.value("REDISCLI_AUTH") : ours;
}

Text password_file_of(const RawServer& raw, const Environment& environment)
{
  const Setting* configured = environment.setting("--password-file");
  const bool is_configured = configured != nullptr && password_of(environment).empty();
  return !raw.password_file && is_configured ? Text(configured->values.front()) : raw.password_file;
}

// RLOCK_SERVER as a job and a script find it has no password; the URLs that it was taken from may.
void borrow_password(Endpoint& endpoint, const Environment& environment)
{
  std::vector<std::string> urls = argv_of(environment.value("REDIS_URL"));
  if (const Setting* configured = environment.setting("--server")) {
    urls.insert(urls.end(), configured->values.begin(), configured->values.end());
  }
  for (const std::string& url : urls) {
    const Result<Endpoint> known = parse_server(url);
    if (known && known->shown() == endpoint.shown()) {
      endpoint.password = known->password;
      endpoint.user = endpoint.user.empty() ? known->user : endpoint.user;
    }
  }
}

void borrow_sentinel_password(Endpoint& endpoint, const Environment& environment)
{
  for (const std::string& url : argv_of(environment.value("REDIS_URL"))) {
    const Result<Endpoint> known = parse_server(url);
    if (known && known->shown() == endpoint.shown()) {
      endpoint.sentinels.user = known->sentinels.user;
      endpoint.sentinels.password = known->sentinels.password;
    }
  }
}

// Of those without one in their URL. The private server is guarded by its directory and has none.
Result<Done> apply_passwords(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  const Text file = password_file_of(raw, environment);
  for (Endpoint& endpoint : server.endpoints) {
    if (!endpoint.password.empty() || endpoint.is_private()) {
      continue;
    }
    Result<std::string> password = file ? read_password_file(*file) : std::string(password_of(environment));
    if (!password) {
      return password.error();
    }
    endpoint.password = *std::move(password);
    std::error_code none;
    if (file && std::filesystem::is_regular_file(*file, none)) {
      endpoint.password_file = *file;  // a pipe is read but once
    }
    if (endpoint.password.empty()) {
      borrow_password(endpoint, environment);
    }
  }
  return Done{};
}

// The sentinels' own: those of the server are not shown to them.
Result<Done> apply_sentinels(const RawServer&, const Environment& environment, ServerSpec& server)
{
  for (Endpoint& endpoint : server.endpoints) {
    Sentinels& sentinels = endpoint.sentinels;
    if (!endpoint.is_sentinel_group() || !sentinels.password.empty()) {
      continue;
    }
    sentinels.password = environment.value("RLOCK_SENTINEL_PASSWORD");
    if (sentinels.user.empty()) {
      sentinels.user = environment.value("RLOCK_SENTINEL_USERNAME");
    }
    if (sentinels.password.empty()) {
      borrow_sentinel_password(endpoint, environment);
    }
  }
  return Done{};
}

std::string value_of(const Text& raw, const Environment& environment, std::string_view name, std::string_view option)
{
  const std::string_view variable = environment.value(name);
  const Setting* configured = environment.setting(option);
  return raw ? *raw : variable.empty() && configured != nullptr ? configured->values.front() : std::string(variable);
}

// What was typed for TLS must not be without effect; the environment is for all servers, the plain ones too.
Result<Done> apply_tls(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  if (raw.tls_key && !raw.cert) {
    return usage("--tls-key: the certificate is missing (try --cert FILE --tls-key FILE)");
  }
  // The file's key is for the file's certificate.
  const std::string_view key_option = environment.value("RLOCK_CERT").empty() ? "--tls-key" : "";
  const TlsFiles files{
      .authorities = value_of(raw.cacert, environment, "RLOCK_CACERT", "--cacert"),
      .certificate = value_of(raw.cert, environment, "RLOCK_CERT", "--cert"),
      .key = raw.cert ? raw.tls_key.value_or("") : value_of({}, environment, "RLOCK_TLS_KEY", key_option)};
  bool used = false;
  for (Endpoint& endpoint : server.endpoints) {
    for (std::optional<TlsFiles>* const tls : {&endpoint.tls, &endpoint.sentinels.tls}) {
      used = used || tls->has_value();
      *tls = *tls ? std::optional(files) : std::nullopt;
    }
  }
  if ((raw.cacert || raw.cert) && !used) {
    return usage((raw.cacert ? "--cacert" : "--cert") + std::string(": ") + server.endpoints.front().shown() +
                 " is a server without TLS (try -S rediss://host:6379)");
  }
  return Done{};
}

Result<Done> apply_quorum(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  if (raw.restart_guard) {
    const Result<Millis> guard = resolve_duration(*raw.restart_guard, guard_rule);
    if (!guard) {
      return guard.error();
    }
    server.restart_guard_for = *guard;
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

constexpr std::string_view url_help =
    "where the locks are kept, such as redis://host:6379 (else RLOCK_SERVER, REDIS_URL, redis://127.0.0.1:6379)";

void add_url_option(Options& options, RawServer& raw, std::string_view more)
{
  const std::string help = std::string(url_help).append(more);
  options.texts("-S,--server", raw.urls, "URL", help.c_str());
}

void add_quorum_options(Options options, RawServer& raw)
{
  options.text("--quorum", raw.quorum, "majority|all",
               "how many of several servers have to grant it; permits may need more than a majority "
               "(majority)");
  options.text("--restart-guard", raw.restart_guard, "DUR",
               "of several servers: one that lost its data, or is new, counts after DUR (the longest ttl in use)");
  options.flag("--no-restart-guard", raw.no_restart_guard,
               "count it at once: all of them keep their data when they are restarted");
}

void add_access_options(Options& options, RawServer& raw)
{
  options.text("--password-file", raw.password_file, "FILE",
               "its first line is the password (else RLOCK_PASSWORD, REDISCLI_AUTH)");
  options.text("--cacert", raw.cacert, "FILE",
               "CA certificates that the server's certificate must be signed by (else RLOCK_CACERT, the system's)");
  options.text("--cert", raw.cert, "FILE", "the client's certificate (else RLOCK_CERT, none)");
  options.text("--tls-key", raw.tls_key, "FILE", "its key (else RLOCK_TLS_KEY, in the same file)");
}

}  // namespace

void add_server_options(Options& options, RawServer& raw)
{
  Options group = options.in(server_group);
  add_url_option(group, raw, "; given several times: independent servers, of which a quorum has to grant the lock");
  group.text("--server-timeout", raw.timeout, "DUR",
             "for connecting and for every answer (5s; of several servers 500ms each)");
  add_quorum_options(group, raw);
  add_access_options(group, raw);
}

void add_single_server_options(Options& options, RawServer& raw)
{
  Options group = options.in(server_group);
  add_url_option(group, raw, "");
  group.text("--server-timeout", raw.timeout, "DUR", "for connecting and for every answer (5s)");
  add_quorum_options(options.in(""), raw);
  add_access_options(group, raw);
}

Result<ServerSpec> resolve_server(const RawServer& raw, const Environment& environment)
{
  Result<std::vector<Endpoint>> endpoints = resolve_endpoints(raw, environment);
  if (!endpoints) {
    return endpoints.error();
  }
  ServerSpec server;
  server.endpoints = *std::move(endpoints);
  server.timeout = server.endpoints.size() > 1 ? quorum_timeout : server.timeout;
  if (raw.timeout) {
    const Result<Millis> timeout = resolve_duration(*raw.timeout, timeout_rule);
    if (!timeout) {
      return timeout.error();
    }
    server.timeout = *timeout;
  }
  for (const auto mean : {apply_quorum, apply_tls, apply_passwords, apply_sentinels}) {
    const Result<Done> meant = mean(raw, environment, server);
    if (!meant) {
      return meant.error();
    }
  }
  server.runtime_directory = environment.value("XDG_RUNTIME_DIR");
  server.local_name = environment.value("RLOCK_LOCAL_NAME");
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
