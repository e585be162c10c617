// SPDX-License-Identifier: Apache-2.0
// The config file: a default for every long option. The arguments come before it, and so does the environment.
#pragma once

#include "base/result.h"
#include "cli/options/environment.h"
#include "cli/options/setting.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rlock::cli {

struct SplitArgv;

struct ConfigFile {
  std::string path;
  std::string text;
  bool is_public = false;  // everybody may read it
};

// The first that is found: $RLOCK_CONFIG, $XDG_CONFIG_HOME/rlock.toml (or in ~/.config), `system_wide`; or none.
// ErrorCode::config: it cannot be read.
Result<std::optional<ConfigFile>> find_config(const Environment& environment,
                                              const std::string& system_wide = "/etc/rlock.toml");

// What the file says to the verb that `app` describes, with all its options: its table [VERB] before what stands above all
// tables.
// ErrorCode::config, "FILE:LINE: why": it cannot be understood, names an option that no verb has, or has a password that
// everybody may read.
Result<std::vector<Setting>> read_settings(const ConfigFile& file, const CLI::App& app);

// As if they had been typed: of those that were not, and that nothing contradicts that was. Those that yield to a
// variable are not among them: Environment::setting has those.
SplitArgv argv_of(const std::vector<Setting>& settings, const CLI::App& app, const SplitArgv& raw);

// The same error; if it is about a word that nobody typed, the file's.
Error blame(Error error, const std::vector<Setting>& settings, const CLI::App& app, const SplitArgv& raw);

}  // namespace rlock::cli
