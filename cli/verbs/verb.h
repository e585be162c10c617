// SPDX-License-Identifier: Apache-2.0
// What a verb is: the one truth that parsing, help, the man page and the completions are made of.
#pragma once

#include "base/exit_code.h"
#include "base/result.h"
#include "cli/options/environment.h"
#include "run/run_end.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {
class Signals;
}

namespace rlock::cli {

class Options;

// The words after the options.
enum class Operands {
  none,
  anywhere,  // options may follow them: rlock status stock --json
  command,   // the first one ends the options: what follows is the job's
  getopt,    // so it does, and a long option may be shortened as long as one only is meant
};

struct ExitLine {
  std::string_view code;
  std::string_view meaning;
};

struct Call {
  std::vector<std::string> operands;
  const Environment& environment;
  Signals& signals;
};

// To be called once the options are parsed. Prints on stdout; an Error is the caller's to print.
using VerbAction = std::function<Result<RunEnd>(const Call&)>;

struct Verb {
  std::string_view name;
  std::string_view summary;   // one line, lower case
  std::string_view synopsis;  // what follows the name
  std::span<const std::string_view> examples;
  std::span<const ExitLine> exits;
  Operands operands;
  // Tells the verb's options; the Act owns what they are parsed into.
  VerbAction (*add_options)(Options& options);
};

constexpr ExitLine usage_exit{"64", "usage, a bad URL in the arguments among it"};
constexpr ExitLine server_exit{"69", "server unreachable or unfit (loading, read-only)"};
constexpr ExitLine output_exit{"71", "standard output could not be written"};
constexpr ExitLine refused_exit{"77", "authentication or ACL refused"};
constexpr ExitLine config_exit{"78", "bad configuration, or the key holds no such lock"};

inline RunEnd ended(ExitCode code) { return ExitWith{static_cast<int>(code)}; }

}  // namespace rlock::cli
