// SPDX-License-Identifier: Apache-2.0
// Splits the words after the verb into options and operands.
#pragma once

#include "cli/verbs/verb.h"

#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rlock::cli {

struct SplitArgv {
  std::vector<std::string> options;   // a name or a value in each element: "--wait" "10s", "-n"
  std::vector<std::string> operands;  // unchanged, byte for byte
};

// `args`: the words after the verb. ErrorCode::usage: an option that `app` does not know, an option without its value, or a
// flag with a value.
Result<SplitArgv> split_argv(const CLI::App& app, std::span<const std::string> args, Operands operands);

// Fills the targets of the options of `app`.
Result<Done> parse(CLI::App& app, const SplitArgv& split);

}  // namespace rlock::cli
