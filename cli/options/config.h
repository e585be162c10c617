// SPDX-License-Identifier: Apache-2.0
// The config file: a default for every long option. Arguments and variables come before the file.
#pragma once

#include "base/result.h"
#include "cli/options/environment.h"
#include "cli/options/option_table.h"
#include "cli/options/verb.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

struct ConfigFile {
  std::string path;
  std::string text;
  bool is_public = false;  // every user may read it
};

// The first file that exists: $RLOCK_CONFIG, $XDG_CONFIG_HOME/rlock.toml (or in ~/.config), `system_wide`; or nullopt.
// ErrorCode::config: the file cannot be read.
Result<std::optional<ConfigFile>> find_config(const Environment& environment,
                                              const std::string& system_wide = "/etc/rlock.toml");

// TOML, read by toml++: `key = value`, above all tables or in a [table]. A value is a string, a number, true or false, or an array
// of these.
struct TomlValue {
  enum class Kind { boolean, text, array };  // a number is text
  Kind kind;
  std::vector<std::string> texts;  // one element, unless it is an array
};

struct TomlEntry {
  std::string table;  // empty: above all tables
  std::string key;
  TomlValue value;
  std::size_t line;            // from 1
  std::size_t table_line = 0;  // of [table]
};

inline constexpr std::string_view servers_table = "servers";  // its entries name servers, for -S @NAME

// The name of a setting or table as errors quote it; "..." for a name that no option or verb can have, because it may be a URL with
// a password.
std::string shown_name(std::string_view name);

// In the order of the file. ErrorCode::config, "LINE: what is wrong". The text quotes no value, which may be a secret.
Result<std::vector<TomlEntry>> parse_toml(std::string_view text);

// The settings for the verb whose options are `known`: those of the table [VERB] before those above all tables. Each entry of
// [servers] is a setting "@NAME".
// ErrorCode::config, "FILE:LINE: why": the file is no valid TOML, names an option that none of `verbs` has, has an option in the
// table of a verb without it, two entries of one table that exclude each other, or a password that every user may read.
Result<std::vector<Setting>> read_settings(const ConfigFile& file, const OptionTable& known, Verbs verbs);

// The error that read_settings has for any of `verbs`.
Result<Done> check_settings(const ConfigFile& file, Verbs verbs);

// The settings as if they were on the command line, without those that `words` give or exclude, and without those of options with a
// variable: Environment::setting has those.
std::vector<Given> settings_beside(std::span<const Given> words, const std::vector<Setting>& settings,
                                   const OptionTable& known);

// The error; when it is about one of the settings, with the place in the file.
Error with_source(Error error, std::span<const Given> settings);

}  // namespace rlock::cli
