// SPDX-License-Identifier: Apache-2.0
#include "cli/options/passwords.h"

#include "base/log.h"
#include "base/password_file.h"
#include "base/text.h"
#include "run/environment.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace rlock::cli {
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

Result<Done> apply_passwords(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  bool is_file_known = false;
  for (Endpoint& endpoint : server.endpoints) {
    if (!endpoint.password.empty() || endpoint.is_private()) {
      continue;
    }
    const std::optional<PasswordFile> file = password_file_of(raw, environment, endpoint);
    RETURN_IF_ERROR(apply_password(file, environment, endpoint));
    if (file) {
      server.password_file = path_for_job(endpoint.password_file);
      if (!std::exchange(is_file_known, true)) {
        warn_of_readers(*file);
      }
    }
  }
  return Done{};
}

void apply_sentinel_passwords(const Environment& environment, ServerSpec& server)
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
