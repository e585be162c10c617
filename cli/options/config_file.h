// SPDX-License-Identifier: Apache-2.0
// Finds and reads the config file.
#pragma once

#include "base/result.h"
#include "cli/options/environment.h"

#include <optional>
#include <string>

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

}  // namespace rlock::cli
