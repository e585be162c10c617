// SPDX-License-Identifier: Apache-2.0
// argv, cut into what is ours and what is the job's.
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
  std::vector<std::string> options;   // one word each: "--wait" "10s", "-n"
  std::vector<std::string> operands;  // byte for byte as they were typed
};

// `args` is what follows the verb. ErrorCode::usage for options that `app` does not know, values that
// are missing and flags that were given one.
Result<SplitArgv> split_argv(const CLI::App& app, std::span<const std::string> args, Operands operands);

// Fills what the options of `app` were bound to.
Result<Done> parse(CLI::App& app, const SplitArgv& words);

}  // namespace rlock::cli
