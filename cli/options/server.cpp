// SPDX-License-Identifier: Apache-2.0
#include "cli/options/server.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "cli/options/passwords.h"
#include "run/environment.h"

#include <array>
#include <iterator>
#include <utility>

namespace rlock::cli {
namespace {

// Where URLs come from, and the kind of error that a bad one is.
struct Source {
  Origin origin;
  std::string setting = {};  // of the file
  [[nodiscard]] Error error(const std::string& text) const
  {
    constexpr std::array codes{ErrorCode::usage, ErrorCode::config, ErrorCode::config, ErrorCode::internal};
    return {codes[static_cast<std::size_t>(origin.kind)],
            origin.name + (setting.empty() ? ": " : ": " + setting + ": ") + text};
  }
};

// The servers of a quorum are independent masters with one vote each.
Result<Done> check_quorum(const std::vector<Endpoint>& endpoints, const Source& source)
{
  for (auto one = endpoints.begin(); one != endpoints.end() && endpoints.size() > 1; ++one) {
    if (one->is_private()) {
      return source.error("local: is one server for one host and no part of a quorum (give redis:// or unix:// URLs)");
    }
    if (one->is_cluster()) {
      return source.error(
          "a cluster is no part of a quorum (give all its nodes in one URL, redis+cluster://host:7000,host:7001)");
    }
    if (const std::string_view refusal = engine_of(*one).refuses_quorum; !refusal.empty()) {
      return source.error(std::string(refusal));
    }
    const auto same = std::find_if(std::next(one), endpoints.end(),
                                   [&](const Endpoint& other) { return one->is_same_server(other); });
    if (same != endpoints.end()) {
      return source.error(one->shown() + " and " + same->shown() + " are the same server, which cannot vote twice");
    }
  }
  return Done{};
}

Error unknown_name(const std::string& word, const Source& source, const Environment& environment)
{
  std::vector<std::string> names;
  for (const Setting& setting : environment.settings()) {
    if (is_name_of_server(setting.option)) {
      names.push_back(setting.option);
    }
  }
  const std::string otherwise =
      names.empty() ? " (write [servers] and " + shown_word(word.substr(1)) + " = \"redis://host\" in rlock.toml)"
                    : " (rlock config lists them)";
  return {
      ErrorCode::config,
      source.error("the config file names no server " + shown_word(word) + did_you_mean(word, names, otherwise)).text};
}

Result<Done> parse_urls(const std::vector<std::string>& urls, const Source& source, std::vector<Endpoint>& endpoints)
{
  for (const std::string& url : urls) {
    auto endpoint = parse_server(url);
    if (!endpoint) {
      Error error = source.error(endpoint.error().text);
      error.code = endpoint.error().code == ErrorCode::config ? ErrorCode::config : error.code;
      return error;
    }
    endpoints.push_back(*std::move(endpoint));
  }
  return Done{};
}

// `words`: URLs and @NAMEs.
Result<NamedEndpoints> endpoints_of(const std::vector<std::string>& words, const Source& source,
                                    const Environment& environment)
{
  NamedEndpoints named{
      .endpoints = {}, .origin = source.origin, .url_origin = source.origin, .named_by = source.origin.name};
  for (const std::string& word : words) {
    if (!is_name_of_server(word)) {
      RETURN_IF_ERROR(parse_urls({word}, source, named.endpoints));
    } else if (const Setting* const known = environment.setting(word)) {
      named.url_origin = {Origin::Kind::file, known->where};
      RETURN_IF_ERROR(parse_urls(known->values, {named.url_origin, word}, named.endpoints));
      named.named_by.append(" ").append(word).append(", ").append(known->where);
    } else {
      return unknown_name(word, source, environment);
    }
  }
  RETURN_IF_ERROR(check_quorum(named.endpoints, source));
  return named;
}

// A blank in a user or password ends the URL before it.
bool has_cut_credentials(const std::vector<std::string>& urls)
{
  return std::any_of(urls.begin(), urls.end(),
                     [&](const std::string& url) { return &url != &urls.front() && url.find('@') < url.find("://"); });
}

Result<NamedEndpoints> endpoints_in(const std::vector<std::string>& urls, const char* variable,
                                    const Environment& environment)
{
  const Source source{{Origin::Kind::variable, variable}};
  if (has_cut_credentials(urls)) {
    return source.error("a blank separates servers (write a blank in a user or password as %20)");
  }
  return endpoints_of(urls, source, environment);
}

// The option, else the variable, else the config file.
std::string value_of(const OptionText& raw, const Environment& environment, std::string_view variable,
                     std::string_view option)
{
  if (raw) {
    return *raw;
  }
  const std::string_view inherited = environment.value(variable);
  const Setting* configured = environment.setting(option);
  return inherited.empty() && configured != nullptr ? configured->values.front() : std::string(inherited);
}

// The files for TLS, for the endpoints that use it. ErrorCode::usage: an option for TLS was given, and no endpoint uses it. A
// variable or a setting without effect is no error, because it may be for other servers.
Result<Done> apply_tls(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  // The config file's key belongs to the config file's certificate.
  const std::string_view key_option = environment.value(cert_variable).empty() ? "--tls-key" : "";
  const TlsFiles files{
      .authorities = value_of(raw.cacert, environment, cacert_variable, "--cacert"),
      .certificate = value_of(raw.cert, environment, cert_variable, "--cert"),
      .key = raw.cert ? raw.tls_key.value_or("") : value_of({}, environment, tls_key_variable, key_option)};
  bool used = false;
  for (Endpoint& endpoint : server.endpoints) {
    for (std::optional<TlsFiles>* const tls : {&endpoint.tls, &endpoint.sentinels.tls}) {
      used = used || tls->has_value();
      *tls = *tls ? std::optional(files) : std::nullopt;
    }
  }
  if ((raw.cacert || raw.cert) && !used) {
    const std::string_view refusal = engine_of(server.endpoints.front()).refuses_tls_files;
    return usage((raw.cacert ? "--cacert: " : "--cert: ") +
                 (refusal.empty()
                      ? server.endpoints.front().shown() + " is a server without TLS (try -S rediss://host:6379)"
                      : std::string(refusal)));
  }
  return Done{};
}

std::string url_help()
{
  return "where the locks are kept, such as redis://host:6379, or @prod for the URL that the table [servers] of the "
         "config file has under prod (else RLOCK_SERVER, the config file, REDIS_URL, " +
         std::string(default_url) + ")";
}

constexpr OptionRow<RawServer> server_row(const HelpText& help)
{
  return {{.names = "-S,--server", .value = "URL|@NAME", .help = help, .repeats = true, .has_variable = true},
          set<&RawServer::urls>};
}

constexpr OptionRow<RawServer> timeout_row(const HelpText& help)
{
  return {{.names = "--server-timeout",
           .value = "DUR",
           .help = help,
           .range = Durations{Millis{1}, std::chrono::hours{24}, "5s"}},
          set<&RawServer::timeout>};
}

constexpr OptionRow<RawServer> single_rows[] = {
    server_row(url_help),
    timeout_row({"time limit for connecting and for each answer", default_server_timeout}),
};

constexpr OptionRow<RawServer> several_rows[] = {
    server_row([] {
      return url_help() + "; given several times: independent servers, of which a quorum must grant the lock";
    }),
    timeout_row([] {
      return "time limit for connecting and for each answer (" + show(default_server_timeout) +
             "; with several servers " + show(default_quorum_timeout) + " for each)";
    }),
};

constexpr OptionRow<RawServer> quorum_row{
    {.names = "--quorum",
     .value = "majority|all",
     .help = "with several servers: how many must grant the lock; permits may need more than a majority (majority)",
     .has_variable = true},
    choose_field<&RawServer::quorum, QuorumRule::majority, QuorumRule::all>};

constexpr OptionRow<RawServer> guard_rows[] = {
    {{.names = "--restart-guard",
      .value = "DUR",
      .help = "with several servers: a server that is new or lost its data counts after DUR (the longest ttl in use)",
      .range = Durations{Millis{0}, std::chrono::hours{30 * 24}, "5m"}},
     set<&RawServer::restart_guard>},
    {{.names = "--no-restart-guard",
      .help = "count such a server at once, because every server keeps its data when it restarts"},
     set<&RawServer::no_restart_guard>},
};

std::string password_help()
{
  std::string variables;
  for (const Engine* const engine : built_engines()) {
    if (!engine->password_variable.empty()) {
      variables += (variables.empty() ? "" : ", ") + std::string(engine->password_variable);
    }
  }
  return "file whose first line is the password (else RLOCK_PASSWORD, RLOCK_PASSWORD_FILE, the variable of the "
         "server's tools: " +
         variables + ")";
}

constexpr OptionRow<RawServer> access_rows[] = {
    {{.names = "--password-file", .value = "FILE", .help = password_help, .has_variable = true},
     set<&RawServer::password_file>},
    {{.names = "--cacert",
      .value = "FILE",
      .help = "CA certificates that the server's certificate must be signed by (else RLOCK_CACERT, the system's)",
      .has_variable = true},
     set<&RawServer::cacert>},
    {{.names = "--cert",
      .value = "FILE",
      .help = "certificate that rlock shows to the server (else RLOCK_CERT, none)",
      .has_variable = true},
     set<&RawServer::cert>},
    {{.names = "--tls-key",
      .value = "FILE",
      .help = "private key of that certificate (else RLOCK_TLS_KEY, in the same file)",
      .needs = {"--cert", " (try --cert FILE --tls-key FILE)"},
      .has_variable = true},
     set<&RawServer::tls_key>},
};

Result<Done> apply_quorum(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  server.restart_guard_for = raw.restart_guard;
  server.restart_guard = !raw.no_restart_guard && server.restart_guard_for != Millis{0};
  const Setting* configured = server.endpoints.size() > 1 ? environment.setting("--quorum") : nullptr;
  if (!raw.quorum && configured == nullptr) {
    return Done{};
  }
  Result<QuorumRule> rule = raw.quorum.value_or(QuorumRule::majority);
  if (!raw.quorum) {
    rule = chosen<QuorumRule::majority, QuorumRule::all>(
        {.option = &quorum_row.option, .value = configured->values.front()});
  }
  if (!rule) {
    return Error{ErrorCode::config, configured->where + ": " + rule.error().text};
  }
  if (server.endpoints.size() == 1) {
    return usage("--quorum is for several servers (try -S redis://a -S redis://b -S redis://c)");
  }
  server.quorum = *rule;
  return Done{};
}

}  // namespace

std::vector<std::string> urls_in(std::string_view text)
{
  constexpr std::string_view spaces = " \t\n\v\f\r";
  std::vector<std::string> urls;
  // No stream: the first one of a process makes a locale, which takes a tenth of the instructions of a start.
  for (auto begin = text.find_first_not_of(spaces); begin != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(spaces, begin), text.size());
    urls.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(spaces, end);
  }
  return urls;
}

Result<NamedEndpoints> resolve_endpoints(const std::vector<std::string>& urls, const Environment& environment)
{
  if (!urls.empty()) {
    return endpoints_of(urls, {{Origin::Kind::option, "--server"}}, environment);
  }
  if (const auto own = urls_in(environment.value("RLOCK_SERVER")); !own.empty()) {
    return endpoints_in(own, "RLOCK_SERVER", environment);
  }
  if (const Setting* configured = environment.setting("--server")) {
    return endpoints_of(configured->values, {{Origin::Kind::file, configured->where}, "server"}, environment);
  }
  if (const auto of_application = urls_in(environment.value("REDIS_URL")); !of_application.empty()) {
    return endpoints_in(of_application, "REDIS_URL", environment);
  }
  return endpoints_of({std::string(default_url)}, {{Origin::Kind::fallback, "default"}}, environment);
}

void add_server_options(OptionTable& options, RawServer& raw)
{
  options.add(several_rows, raw, server_group);
  options.add(quorum_row, raw, server_group);
  options.add(guard_rows, raw, server_group);
  options.add(access_rows, raw, server_group);
}

void add_single_server_options(OptionTable& options, RawServer& raw)
{
  options.add(single_rows, raw, server_group);
  options.add(quorum_row, raw, "");
  options.add(guard_rows, raw, "");
  options.add(access_rows, raw, server_group);
}

RawServer server_given_by(std::span<const Given> options)
{
  RawServer raw;
  OptionTable known;
  add_server_options(known, raw);
  static_cast<void>(known.apply_by_name(options));  // the verb has told what is wrong
  return raw;
}

Result<ServerSpec> resolve_server(const RawServer& raw, const Environment& environment)
{
  ASSIGN_OR_RETURN(auto named, resolve_endpoints(raw.urls, environment));
  ServerSpec server;
  server.login = login_of(named, raw, environment);
  server.endpoints = std::move(named.endpoints);
  server.named_by = std::move(named.named_by);
  server.timeout = raw.timeout.value_or(server.endpoints.size() > 1 ? default_quorum_timeout : server.timeout);
  for (const auto apply : {apply_quorum, apply_tls, apply_passwords}) {
    RETURN_IF_ERROR(apply(raw, environment, server));
  }
  apply_sentinel_passwords(environment, server);
  server.runtime_directory = environment.value("XDG_RUNTIME_DIR");
  server.local_name = environment.value("RLOCK_LOCAL_NAME");
  server.local_idle = environment.value("RLOCK_LOCAL_IDLE");
  return server;
}

}  // namespace rlock::cli
