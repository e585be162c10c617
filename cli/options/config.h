// SPDX-License-Identifier: Apache-2.0
// The config file: a default for every long option. Arguments and variables come before the file.
#pragma once

#include "base/result.h"
#include "cli/options/config_file.h"
#include "cli/options/setting.h"

#include <string>
#include <vector>

namespace rlock::cli {

class OptionTable;
struct ParsedWords;

// The settings for the verb whose options are `known`: those of the table [VERB] before those above all
// tables.
// ErrorCode::config, "FILE:LINE: why": the file is no valid TOML, names an option that no verb has, or has a password that
// every user may read.
Result<std::vector<Setting>> read_settings(const ConfigFile& file, const OptionTable& known);

// The settings as if they were on the command line, without those that `split` gives or excludes, and without those of options
// with a variable: Environment::setting has those.
ParsedWords argv_of(const std::vector<Setting>& settings, const OptionTable& known, const ParsedWords& split);

// The error; when it is about a setting, with the place in the file.
Error with_source(Error error, const std::vector<Setting>& settings, const OptionTable& known, const ParsedWords& split);

}  // namespace rlock::cli
