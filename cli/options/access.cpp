// SPDX-License-Identifier: Apache-2.0
#include "cli/options/access.h"

#include "base/password_file.h"
#include "cli/options/endpoints.h"
#include "run/environment.h"

#include <filesystem>
#include <system_error>

namespace rlock::cli {
namespace {

// Where a password is, and who says so.
struct PasswordFile {
  std::string path;
  std::string_view named_by;
};

// The first of --password-file, RLOCK_PASSWORD_FILE, the config file, that no variable with a password comes before.
std::optional<PasswordFile> password_file_of(const RawServer& raw, const Environment& environment)
{
  if (raw.password_file) {
    return PasswordFile{*raw.password_file, "--password-file"};
  }
  if (!environment.value(password_variable).empty()) {
    return std::nullopt;
  }
  if (const auto inherited = environment.value(password_file_variable); !inherited.empty()) {
    return PasswordFile{std::string(inherited), password_file_variable};
  }
  const Setting* configured = environment.setting("--password-file");
  return configured != nullptr && environment.value("REDISCLI_AUTH").empty()
             ? std::optional(PasswordFile{configured->values.front(), "--password-file"})
             : std::nullopt;
}

std::string_view password_of(const Environment& environment)
{
  const std::string_view own = environment.value(password_variable);
  return own.empty() ? environment.value("REDISCLI_AUTH") : own;
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

// The URLs for which the environment or the config file may know passwords. RLOCK_SERVER of a job or a script has none.
std::vector<std::string> known_urls(const Environment& environment)
{
  std::vector<std::string> urls = urls_in(environment.value("REDIS_URL"));
  if (const Setting* configured = environment.setting("--server")) {
    urls.insert(urls.end(), configured->values.begin(), configured->values.end());
  }
  return urls;
}

// From the last of `urls` that has a secret for the same server, and for the same user where `endpoint` names one.
std::optional<Endpoint> find_same(const Endpoint& endpoint, const std::vector<std::string>& urls,
                                  bool (*has_secret)(const Endpoint&))
{
  std::optional<Endpoint> found;
  for (const std::string& url : urls) {
    Result<Endpoint> known = parse_server(url);
    const bool is_same =
        known && known->shown() == endpoint.shown() && (endpoint.user.empty() || endpoint.user == known->user);
    if (is_same && has_secret(*known)) {
      found = *std::move(known);
    }
  }
  return found;
}

Result<Done> apply_password(const std::optional<PasswordFile>& file, const Environment& environment, Endpoint& endpoint)
{
  Result<std::string> password =
      file ? read_password_file(file->path, file->named_by) : std::string(password_of(environment));
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
  if (const auto same =
          find_same(endpoint, known_urls(environment), [](const Endpoint& known) { return !known.password.empty(); })) {
    endpoint.password = same->password;
    endpoint.user = same->user;
  }
  return Done{};
}

// The option, else the variable, else the config file.
std::string value_of(const Text& raw, const Environment& environment, std::string_view variable,
                     std::string_view option)
{
  if (raw) {
    return *raw;
  }
  const std::string_view inherited = environment.value(variable);
  const Setting* configured = environment.setting(option);
  return inherited.empty() && configured != nullptr ? configured->values.front() : std::string(inherited);
}

}  // namespace

Result<Done> apply_passwords(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  const std::optional<PasswordFile> file = password_file_of(raw, environment);
  for (Endpoint& endpoint : server.endpoints) {
    if (!endpoint.password.empty() || endpoint.is_private()) {
      continue;
    }
    if (const Result<Done> applied = apply_password(file, environment, endpoint); !applied) {
      return applied;
    }
    if (file) {
      server.password_file = path_for_job(endpoint.password_file);
    }
  }
  return Done{};
}

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
    if (const auto same = find_same(endpoint, known_urls(environment),
                                    [](const Endpoint& known) { return !known.sentinels.password.empty(); })) {
      sentinels.user = same->sentinels.user;
      sentinels.password = same->sentinels.password;
    }
  }
  return Done{};
}

Result<Done> apply_tls(const RawServer& raw, const Environment& environment, ServerSpec& server)
{
  if (raw.tls_key && !raw.cert) {
    return usage("--tls-key: the certificate is missing (try --cert FILE --tls-key FILE)");
  }
  // The config file's key belongs to the config file's certificate.
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

}  // namespace rlock::cli
