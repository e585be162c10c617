// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_credentials.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include "base/text.h"

namespace rlock::s3 {
namespace {

using Settings = std::map<std::string, std::string>;

// The settings under "[section]"; nullopt: there is no such section.
std::optional<Settings> section_of(std::string_view file, std::string_view section)
{
  std::optional<Settings> found;
  bool is_inside = false;
  for (const std::string_view raw : split(file, '\n')) {
    const std::string_view line = trimmed(raw);
    if (line.empty() || line.front() == '#' || line.front() == ';') {
      continue;
    }
    if (line.front() == '[') {
      is_inside = trimmed(line.substr(1, line.find(']') - 1)) == section;
      if (is_inside && !found) {
        found.emplace();
      }
    } else if (const auto sign = line.find('='); is_inside && sign != std::string_view::npos && raw.front() != ' ') {
      (*found)[std::string(trimmed(line.substr(0, sign)))] = trimmed(line.substr(sign + 1));
    }
  }
  return found;
}

std::string first_of(std::initializer_list<std::string> texts)
{
  for (const std::string& each : texts) {
    if (!each.empty()) {
      return each;
    }
  }
  return "";
}

// What the shared files say of a profile, and of credentials that rlock cannot use.
struct Profile {
  std::string name;
  bool is_there = false;
  Settings settings;
};

Profile profile_of(const std::string& name, const CredentialSources& sources)
{
  const std::string home = sources.variable("HOME") + "/.aws/";
  const std::string config = first_of({sources.variable("AWS_CONFIG_FILE"), home + "config"});
  const std::string shared = first_of({sources.variable("AWS_SHARED_CREDENTIALS_FILE"), home + "credentials"});
  const auto settings = section_of(sources.file(config), name == "default" ? name : "profile " + name);
  Profile profile{.name = name, .is_there = settings.has_value(), .settings = settings.value_or(Settings())};
  if (const auto secrets = section_of(sources.file(shared), name)) {
    profile.is_there = true;
    for (const auto& [key, value] : *secrets) {
      profile.settings[key] = value;
    }
  }
  return profile;
}

Error no_credentials(const ConnectionSpec& spec, const Profile& profile, bool is_named)
{
  const std::string name = "the profile " + printable(profile.name);
  if (is_named && !profile.is_there) {
    return {ErrorCode::config,
            spec.url + ": " + name + " is not in the shared files (see aws configure list-profiles)"};
  }
  for (const char* other :
       {"credential_process", "sso_session", "sso_start_url", "role_arn", "web_identity_token_file"}) {
    if (profile.settings.contains(other)) {
      return {ErrorCode::config, spec.url + ": " + name + " has " + other +
                                     ", which rlock does not read (try: eval \"$(aws configure export-credentials "
                                     "--format env)\")"};
    }
  }
  return {ErrorCode::refused,
          spec.url + ": no credentials (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile)"};
}

}  // namespace

// NOLINTBEGIN(concurrency-mt-unsafe): rlock changes no variable while a store is open.
CredentialSources sources_of_process()
{
  return {.variable =
              [](const char* name) {
                const char* const value = std::getenv(name);
                return std::string(value == nullptr ? "" : value);
              },
          .file =
              [](const std::string& path) {
                std::ifstream file(path);
                return std::string(std::istreambuf_iterator<char>(file), {});
              }};
}
// NOLINTEND(concurrency-mt-unsafe)

Result<Credentials> find_credentials(const ConnectionSpec& spec, const CredentialSources& sources)
{
  const std::string named = first_of({spec.profile, sources.variable("AWS_PROFILE")});
  const Profile profile = profile_of(named.empty() ? "default" : named, sources);
  const auto setting = [&profile](const char* key) {
    const auto found = profile.settings.find(key);
    return found == profile.settings.end() ? std::string() : found->second;
  };
  Credentials found;
  found.region = first_of({spec.region, sources.variable("AWS_REGION"), sources.variable("AWS_DEFAULT_REGION"),
                           setting("region"), std::string(default_region)});
  if (!spec.user.empty()) {
    found.access_key = spec.user;
    found.secret = spec.password;
    found.source = "the URL";
  } else if (spec.profile.empty() && !sources.variable("AWS_ACCESS_KEY_ID").empty()) {
    found.access_key = sources.variable("AWS_ACCESS_KEY_ID");
    found.secret = sources.variable("AWS_SECRET_ACCESS_KEY");
    found.token = sources.variable("AWS_SESSION_TOKEN");
    found.source = "the AWS_ variables";
  } else {
    found.access_key = setting("aws_access_key_id");
    found.secret = setting("aws_secret_access_key");
    found.token = setting("aws_session_token");
    found.source = "the profile " + printable(profile.name);
  }
  if (!found.access_key.empty() && found.secret.empty()) {
    return Error{ErrorCode::refused, spec.url + ": the access key in " + found.source + " has no secret" +
                                         (spec.user.empty() ? "" : " (set RLOCK_PASSWORD)")};
  }
  return found.access_key.empty() ? Result<Credentials>(no_credentials(spec, profile, !named.empty()))
                                  : Result(std::move(found));
}

}  // namespace rlock::s3
