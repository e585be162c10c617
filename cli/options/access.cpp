// SPDX-License-Identifier: Apache-2.0
#include "cli/options/access.h"

#include "base/password_file.h"
#include "cli/options/endpoints.h"

#include <filesystem>
#include <system_error>

namespace rlock::cli {
namespace {

std::string_view password_of(const Environment& environment)
{
  const std::string_view own = environment.value("RLOCK_PASSWORD");
  return own.empty() ? environment.value("REDISCLI_AUTH") : own;
}

Text password_file_of(const RawServer& raw, const Environment& environment)
{
  const Setting* configured = environment.setting("--password-file");
  const bool is_configured = configured != nullptr && password_of(environment).empty();
  return !raw.password_file && is_configured ? Text(configured->values.front()) : raw.password_file;
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

// From the last of `urls` that means the same server.
std::optional<Endpoint> find_same(const Endpoint& endpoint, const std::vector<std::string>& urls)
{
  std::optional<Endpoint> found;
  for (const std::string& url : urls) {
    Result<Endpoint> known = parse_server(url);
    if (known && known->shown() == endpoint.shown()) {
      found = *std::move(known);
    }
  }
  return found;
}

Result<Done> apply_password(const Text& file, const Environment& environment, Endpoint& endpoint)
{
  Result<std::string> password = file ? read_password_file(*file) : std::string(password_of(environment));
  if (!password) {
    return password.error();
  }
  endpoint.password = *std::move(password);
  std::error_code none;
  if (file && std::filesystem::is_regular_file(*file, none)) {
    endpoint.password_file = *file;  // to be read again later; a pipe can be read only once
  }
  if (!endpoint.password.empty()) {
    return Done{};
  }
  if (const auto same = find_same(endpoint, known_urls(environment))) {
    endpoint.password = same->password;
    endpoint.user = endpoint.user.empty() ? same->user : endpoint.user;
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
  const Text file = password_file_of(raw, environment);
  for (Endpoint& endpoint : server.endpoints) {
    const bool needs_one = endpoint.password.empty() && !endpoint.is_private();
    Result<Done> applied = needs_one ? apply_password(file, environment, endpoint) : Result(Done{});
    if (!applied) {
      return applied;
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
    if (const auto same = find_same(endpoint, urls_in(environment.value("REDIS_URL")))) {
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
