// SPDX-License-Identifier: Apache-2.0
#include "cli/options/server.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/password_file.h"
#include "base/text.h"
#include "run/environment.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
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
      return source.error(
          "local: is one server for one host and no part of a quorum (give redis:// or "
          "unix:// URLs)");
    }
    if (one->is_cluster()) {
      return source.error(
          "a cluster is no part of a quorum (give all its nodes in one URL, "
          "redis+cluster://host:7000,host:7001)");
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

bool is_name_of_server(std::string_view word) { return word.starts_with('@'); }

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
    Result<Done> parsed = Done{};
    if (!is_name_of_server(word)) {
      parsed = parse_urls({word}, source, named.endpoints);
    } else if (const Setting* const known = environment.setting(word)) {
      named.url_origin = {Origin::Kind::file, known->where};
      parsed = parse_urls(known->values, {named.url_origin, word}, named.endpoints);
      named.named_by.append(" ").append(word).append(", ").append(known->where);
    } else {
      parsed = unknown_name(word, source, environment);
    }
    if (!parsed) {
      return parsed.error();
    }
  }
  const auto checked = check_quorum(named.endpoints, source);
  return checked ? Result(std::move(named)) : Result<NamedEndpoints>(checked.error());
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

namespace {

// Where a password is, and who says so.
struct PasswordFile {
  std::string path;
  std::string_view named_by;
  Origin origin;
};

// The password that the own tools of such a server read; empty: none. It is meant for no other kind of server.
std::string_view password_of_tools(const Environment& environment, const Endpoint& endpoint)
{
  const std::string_view variable = engine_of(endpoint).password_variable;
  return variable.empty() ? variable : environment.value(variable);
}

// The first of --password-file, RLOCK_PASSWORD_FILE, the config file, that no variable with a password comes before.
std::optional<PasswordFile> password_file_of(const RawServer& raw, const Environment& environment,
                                             const Endpoint& endpoint)
{
  if (raw.password_file) {
    return PasswordFile{*raw.password_file, "--password-file", {Origin::Kind::option, "--password-file"}};
  }
  if (!environment.value(password_variable).empty()) {
    return std::nullopt;
  }
  if (const auto inherited = environment.value(password_file_variable); !inherited.empty()) {
    const std::string variable(password_file_variable);
    return PasswordFile{std::string(inherited), password_file_variable, {Origin::Kind::variable, variable}};
  }
  const Setting* configured = environment.setting("--password-file");
  return configured != nullptr && password_of_tools(environment, endpoint).empty()
             ? std::optional(
                   PasswordFile{configured->values.front(), "--password-file", {Origin::Kind::file, configured->where}})
             : std::nullopt;
}

std::string_view password_of(const Environment& environment, const Endpoint& endpoint)
{
  const std::string_view own = environment.value(password_variable);
  return own.empty() ? password_of_tools(environment, endpoint) : own;
}

// The absolute path of a file that can be read again later; empty: it is a pipe.
std::string lasting_path(const std::string& path)
{
  std::error_code failed;
  const std::string absolute = std::filesystem::absolute(path, failed).string();
  return !failed && std::filesystem::is_regular_file(absolute, failed) ? absolute : "";
}

// Empty: another process means another file by this path.
std::string path_for_job(const std::string& path)
{
  return path.starts_with("/dev/") || path.starts_with("/proc/") ? "" : path;
}

// A URL for which the environment or the config file may know a password. RLOCK_SERVER of a job or a script has none.
struct KnownUrl {
  std::string url;
  Origin origin;
};
std::vector<KnownUrl> known_urls(const Environment& environment)
{
  std::vector<KnownUrl> known;
  for (std::string& url : urls_in(environment.value("REDIS_URL"))) {
    known.push_back({std::move(url), {Origin::Kind::variable, "REDIS_URL"}});
  }
  for (const Setting& setting : environment.settings()) {
    if (setting.option == "--server" || is_name_of_server(setting.option)) {
      for (const std::string& url : setting.values) {
        known.push_back({url, {Origin::Kind::file, setting.where}});
      }
    }
  }
  return known;
}

struct KnownServer {
  Endpoint endpoint;
  Origin origin;
};

// From the last of the known URLs that has a secret for the same server, and for the same user where `endpoint` names one.
std::optional<KnownServer> find_same(const Endpoint& endpoint, const Environment& environment,
                                     bool (*has_secret)(const Endpoint&))
{
  std::optional<KnownServer> found;
  for (const KnownUrl& each : known_urls(environment)) {
    Result<Endpoint> known = parse_server(each.url);
    const bool is_same =
        known && known->shown() == endpoint.shown() && (endpoint.user.empty() || endpoint.user == known->user);
    if (is_same && has_secret(*known)) {
      found = KnownServer{*std::move(known), each.origin};
    }
  }
  return found;
}

bool has_password(const Endpoint& endpoint) { return !endpoint.password.empty(); }

Result<Done> apply_password(const std::optional<PasswordFile>& file, const Environment& environment, Endpoint& endpoint)
{
  Result<std::string> password =
      file ? read_password_file(file->path, file->named_by) : std::string(password_of(environment, endpoint));
  if (!password) {
    return password.error();
  }
  endpoint.password = *std::move(password);
  if (file) {
    endpoint.password_file = lasting_path(file->path);
  }
  if (!endpoint.password.empty()) {
    return Done{};
  }
  if (const auto same = find_same(endpoint, environment, has_password)) {
    endpoint.password = same->endpoint.password;
    endpoint.user = same->endpoint.user;
  }
  return Done{};
}

}  // namespace

std::optional<Origin> origin_of_password(const RawServer& raw, const Environment& environment, const Endpoint& endpoint,
                                         const Origin& url_origin)
{
  if (endpoint.is_private()) {
    return std::nullopt;
  }
  if (!endpoint.password.empty()) {
    return url_origin;
  }
  if (const auto file = password_file_of(raw, environment, endpoint)) {
    return file->origin;
  }
  for (const std::string_view variable : {password_variable, engine_of(endpoint).password_variable}) {
    if (!variable.empty() && !environment.value(variable).empty()) {
      return Origin{Origin::Kind::variable, std::string(variable)};
    }
  }
  const auto same = find_same(endpoint, environment, has_password);
  return same ? std::optional(same->origin) : std::nullopt;
}

namespace {

std::string login_of(const Endpoint& endpoint, const RawServer& raw, const Environment& environment,
                     const Origin& url_origin)
{
  const auto origin = origin_of_password(raw, environment, endpoint, url_origin);
  if (!origin || endpoint.is_sentinel_group()) {  // the sentinels have a login of their own
    return "";
  }
  const std::string_view user =
      endpoint.user.empty() && endpoint.is_redis() ? "default" : std::string_view(endpoint.user);
  const std::string tried = user.empty() ? "" : "the user '" + printable(user) + "' and ";
  if (!endpoint.password.empty()) {
    return tried + "the password in the URL of " + printable(origin->name);
  }
  const auto file = password_file_of(raw, environment, endpoint);
  return tried + "the password in " +
         (file ? printable(file->path) + ", which " + printable(origin->name) + " names" : printable(origin->name));
}

}  // namespace

std::string login_of(const NamedEndpoints& named, const RawServer& raw, const Environment& environment)
{
  std::string login;
  for (const Endpoint& endpoint : named.endpoints) {
    const std::string own = login_of(endpoint, raw, environment, named.url_origin);
    if (!login.empty() && own != login) {
      return "";
    }
    login = own;
  }
  return login;
}

Error with_password_for_job(Error error, const Environment& environment)
{
  const auto named = resolve_endpoints({}, environment);
  const bool is_in_job = !environment.value(token_variable).empty();
  if (!is_in_job || !named || named->origin.name != server_variable) {
    return error;
  }
  const bool has_password = std::ranges::any_of(named->endpoints, [&](const Endpoint& each) {
    return origin_of_password({}, environment, each, named->url_origin).has_value();
  });
  if (!has_password) {
    error.text += no_password_in_job;
  }
  return error;
}

namespace {

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

// Other programs for passwords refuse such a file; an administrator of a container may not choose its mode. So the line is no error,
// but -q does not hide it.
void warn_of_readers(const PasswordFile& file)
{
  struct stat found {};
  if (::stat(file.path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && (found.st_mode & S_IROTH) != 0) {
    Log(Verbosity::normal)
        .error("warning: " + std::string(file.named_by) + ": every user may read the password in " +
               printable(file.path) + " (try chmod o-r)");
  }
}

// For each endpoint without a password in its URL: that of --password-file, RLOCK_PASSWORD, RLOCK_PASSWORD_FILE, the variable of
// the server's own tools, the config file's password-file, or that of another URL for the same server. `local:` has none, because its directory is private.
Result<Done> apply_passwords(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  bool is_file_known = false;
  for (Endpoint& endpoint : server.endpoints) {
    if (!endpoint.password.empty() || endpoint.is_private()) {
      continue;
    }
    const std::optional<PasswordFile> file = password_file_of(raw, environment, endpoint);
    if (const Result<Done> applied = apply_password(file, environment, endpoint); !applied) {
      return applied;
    }
    if (file) {
      server.password_file = path_for_job(endpoint.password_file);
      if (!std::exchange(is_file_known, true)) {
        warn_of_readers(*file);
      }
    }
  }
  return Done{};
}

// The sentinels' own passwords; rlock never sends them those of the server.
Result<Done> apply_sentinel_passwords(const RawServer&, const Environment& environment, ServerSpec& server)
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
    if (!sentinels.password.empty()) {
      continue;
    }
    if (const auto same =
            find_same(endpoint, environment, [](const Endpoint& known) { return !known.sentinels.password.empty(); })) {
      sentinels.user = same->endpoint.sentinels.user;
      sentinels.password = same->endpoint.sentinels.password;
    }
  }
  return Done{};
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

constexpr std::array single_rows{
    server_row(url_help),
    timeout_row({"time limit for connecting and for each answer", default_server_timeout}),
};

constexpr std::array several_rows{
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

constexpr std::array guard_rows{
    OptionRow<RawServer>{
        {.names = "--restart-guard",
         .value = "DUR",
         .help = "with several servers: a server that is new or lost its data counts after DUR (the longest "
                 "ttl in use)",
         .range = Durations{Millis{0}, std::chrono::hours{30 * 24}, "5m"}},
        set<&RawServer::restart_guard>},
    OptionRow<RawServer>{{.names = "--no-restart-guard",
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
         "server's "
         "tools: " +
         variables + ")";
}

constexpr std::array access_rows{
    OptionRow<RawServer>{{.names = "--password-file", .value = "FILE", .help = password_help, .has_variable = true},
                         set<&RawServer::password_file>},
    OptionRow<RawServer>{
        {.names = "--cacert",
         .value = "FILE",
         .help = "CA certificates that the server's certificate must be signed by (else RLOCK_CACERT, the "
                 "system's)",
         .has_variable = true},
        set<&RawServer::cacert>},
    OptionRow<RawServer>{{.names = "--cert",
                          .value = "FILE",
                          .help = "certificate that rlock shows to the server (else RLOCK_CERT, none)",
                          .has_variable = true},
                         set<&RawServer::cert>},
    OptionRow<RawServer>{{.names = "--tls-key",
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
  std::vector<Given> relevant;
  for (const Given& given : options) {
    if (const Option* const option = known.find(given.option->name())) {
      relevant.push_back({.option = option, .value = given.value});
    }
  }
  static_cast<void>(known.apply(relevant));  // the verb has told what is wrong
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
  for (const auto apply : {apply_quorum, apply_tls, apply_passwords, apply_sentinel_passwords}) {
    RETURN_IF_ERROR(apply(raw, environment, server));
  }
  server.runtime_directory = environment.value("XDG_RUNTIME_DIR");
  server.local_name = environment.value("RLOCK_LOCAL_NAME");
  server.local_idle = environment.value("RLOCK_LOCAL_IDLE");
  return server;
}

void wipe_passwords(std::span<char* const> argv)
{
  constexpr std::string_view secret = "password=";  // also sentinel_password= and sslpassword=
  for (char* word : argv) {
    char* const scheme_end = std::strstr(word, "://");
    char* const parameter = scheme_end == nullptr ? nullptr : std::strstr(scheme_end, secret.data());
    if (parameter != nullptr) {
      char* const value = parameter + secret.size();
      std::fill(value, value + std::strlen(value), '*');
    }
    // The last '@', because a password without percent-encoding may contain more of them.
    char* const at = scheme_end == nullptr ? nullptr : std::strrchr(scheme_end, '@');
    if (at != nullptr) {
      std::fill(scheme_end + 3, at, '*');
    }
  }
}

}  // namespace rlock::cli
