// SPDX-License-Identifier: Apache-2.0
// rlock config: the settings that the other verbs would have, and where each comes from.
#include "cli/options/config.h"

#include "base/duration.h"
#include "base/text.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/passwords.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/dispatch.h"
#include "run/environment.h"

#include <algorithm>
#include <array>

namespace rlock::cli {
namespace {

using Kind = Origin::Kind;

struct RawConfig {
  RawKeys keys;
  RawServer server;
  ColorWhen color = ColorWhen::automatic;
  bool json = false;
};

ShownSetting setting_of(std::string name, std::optional<std::string> value, const Origin& origin)
{
  constexpr std::array<std::string_view, 4> words{"option", "variable", "file", "default"};
  return {.name = std::move(name),
          .value = std::move(value),
          .origin = words[static_cast<std::size_t>(origin.kind)],
          .variable = origin.kind == Kind::variable ? origin.name : "",
          .from = origin.name,
          .place = origin.kind == Kind::file ? origin.name : ""};
}

const Origin by_default{Kind::fallback, "default"};

std::string joined_values(const std::vector<std::string>& values)
{
  std::string text = joined(values, " ", without_secrets);
  return values.empty() ? "true" : text;  // a flag
}

// An option whose value is used as it is.
struct PlainOption {
  std::string_view name;
  std::string_view variable = {};
  std::string_view default_value = {};  // empty: none
};
constexpr std::array plain_options{
    PlainOption{"quorum", {}, "majority"},
    PlainOption{"restart-guard", {}, "the longest ttl in use"},
    PlainOption{"no-restart-guard", {}, "false"},
    PlainOption{"password-file", password_file_variable},
    PlainOption{"cacert", cacert_variable, "the system's"},
    PlainOption{"cert", cert_variable},
    PlainOption{"tls-key", tls_key_variable},
    PlainOption{"prefix"},
};

ShownSetting shown_option(const PlainOption& option, const Call& call)
{
  const std::string name = "--" + std::string(option.name);
  const auto is_named = [&](const Given& given) { return given.option->has_name(name); };
  const auto given = std::find_if(call.options.rbegin(), call.options.rend(), is_named);
  if (given != call.options.rend()) {
    const std::string value = given->option->takes_value() ? without_secrets(given->value) : "true";
    return setting_of(std::string(option.name), value,
                      given->where.empty() ? Origin{Kind::option, name} : Origin{Kind::file, given->where});
  }
  if (const auto value = call.environment.value(option.variable); !option.variable.empty() && !value.empty()) {
    return setting_of(std::string(option.name), std::string(value), {Kind::variable, std::string(option.variable)});
  }
  if (const Setting* const configured = call.environment.setting(name)) {
    return setting_of(std::string(option.name), joined_values(configured->values), {Kind::file, configured->where});
  }
  return setting_of(std::string(option.name),
                    option.default_value.empty() ? std::nullopt : std::optional(std::string(option.default_value)),
                    by_default);
}

// A private key belongs to the certificate that is named in the same way.
bool belongs_to(const ShownSetting& key, const ShownSetting& certificate)
{
  const bool is_named = certificate.origin == "option" || certificate.origin == "variable";
  return !is_named || key.origin == certificate.origin;
}

std::vector<ShownSetting> shown_plain_options(const Call& call)
{
  std::vector<ShownSetting> all;
  for (const PlainOption& option : plain_options) {
    ShownSetting setting = shown_option(option, call);
    if (setting.name == "tls-key" && !belongs_to(setting, all.back())) {
      setting = setting_of(setting.name, std::nullopt, by_default);
    }
    all.push_back(std::move(setting));
  }
  return all;
}

// The other places that name a server: "; not used: /etc/rlock.toml:3, REDIS_URL".
std::string unused_places(const NamedEndpoints& named, const Environment& environment)
{
  std::vector<std::string> places;
  if (!environment.value("RLOCK_SERVER").empty()) {
    places.emplace_back("RLOCK_SERVER");
  }
  if (const Setting* const configured = environment.setting("--server")) {
    places.push_back(configured->where);
  }
  if (!environment.value("REDIS_URL").empty()) {
    places.emplace_back("REDIS_URL");
  }
  std::string text;
  for (const std::string& place : places) {
    if (place != named.origin.name) {
      text.append(text.empty() ? "; not used: " : ", ").append(place);
    }
  }
  return text;
}

// The servers, the user and the password for them, and how long rlock waits for their answers.
std::vector<ShownSetting> shown_server(const ServerSpec& server, const NamedEndpoints& named, const RawServer& raw,
                                       const Call& call)
{
  ShownSetting servers = setting_of("server", server.shown(), named.origin);
  servers.from = named.named_by + unused_places(named, call.environment);
  servers.place = named.url_origin.kind == Kind::file ? named.url_origin.name : "";
  const auto password = origin_of_password(raw, call.environment, named.endpoints.front(), named.url_origin);
  const std::string& user = server.endpoints.front().user;
  std::vector<ShownSetting> all{std::move(servers)};
  if (!user.empty()) {
    all.push_back(setting_of("user", user, named.endpoints.front().user.empty() ? *password : named.url_origin));
  }
  all.push_back(setting_of("password", password ? std::optional(std::string(masked)) : std::nullopt,
                           password.value_or(by_default)));
  ShownSetting timeout = shown_option({"server-timeout"}, call);
  timeout.value = show(server.timeout);
  all.push_back(std::move(timeout));
  for (const std::string_view variable : {"RLOCK_LOCAL_NAME", "RLOCK_LOCAL_IDLE"}) {
    const auto value = call.environment.value(variable);
    if (!value.empty() && server.endpoints.front().is_private()) {
      all.push_back(setting_of(std::string(variable), std::string(value), {Kind::variable, std::string(variable)}));
    }
  }
  return all;
}

ShownSetting shown_file(const std::optional<ConfigFile>& file, const Environment& environment)
{
  const bool is_named = !environment.value("RLOCK_CONFIG").empty();
  return setting_of("config-file", file ? std::optional(file->path) : std::nullopt,
                    is_named ? Origin{Kind::variable, "RLOCK_CONFIG"} : by_default);
}

// The entries of the file that are not options of this verb: those of other verbs, and the servers by name.
std::vector<ShownSetting> shown_entries(const ConfigFile& file)
{
  OptionTable own(config_verb.name);
  const VerbAction action = add_verb_options(config_verb, own);
  const auto entries = parse_toml(file.text);
  std::vector<ShownSetting> all;
  for (const TomlEntry& entry : entries ? *entries : std::vector<TomlEntry>{}) {
    if (entry.table.empty() && own.find("--" + entry.key) != nullptr) {
      continue;
    }
    all.push_back(setting_of((entry.table.empty() ? "" : entry.table + ".") + entry.key,
                             joined_values(entry.value.texts),
                             {Kind::file, file.path + ":" + std::to_string(entry.line)}));
  }
  return all;
}

Result<RunEnd> execute(const RawConfig& raw, const Call& call)
{
  const auto server = resolve_server(raw.server, call.environment);
  const auto named = resolve_endpoints(raw.server.urls, call.environment);
  const auto file = find_config(call.environment);
  if (!server || !named || !file) {
    return !server ? server.error() : !named ? named.error() : file.error();
  }
  RETURN_IF_ERROR(*file ? check_settings(**file, all_verbs()) : Result(Done{}));
  std::vector<ShownSetting> all{shown_file(*file, call.environment)};
  for (const auto& some : {shown_server(*server, *named, raw.server, call), shown_plain_options(call),
                           *file ? shown_entries(**file) : std::vector<ShownSetting>{}}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  if (!raw.json) {
    print(show_settings(all, resolve_colors(raw.color, call.environment)));
  }
  for (const ShownSetting& setting : raw.json ? all : std::vector<ShownSetting>{}) {
    print(setting_json(setting));
  }
  return ended(ExitCode::ok);
}

void add_config_options(OptionTable& options, RawConfig& raw)
{
  options.add(prefix_row, raw.keys);
  options.add(json_lines_row, raw.json);
  options.add(color_row, raw.color);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb config_verb{
    .name = "config",
    .summary = "print each setting, and where it comes from",
    .synopsis = "[OPTION...]",
    .examples = {"rlock config", "rlock config -S @prod", "rlock config --json | grep '\"server\"'"},
    .own_exits = {{ExitCode::ok, "printed; no server was asked"}},
    .common_exits = {ExitCode::usage, ExitCode::os, ExitCode::config},
    .operands = Operands::none,
    .add_options = bound<RawConfig, add_config_options, execute>,
};

}  // namespace rlock::cli
