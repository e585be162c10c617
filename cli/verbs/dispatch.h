// SPDX-License-Identifier: Apache-2.0
// From argv to a verb and its end.
#pragma once

#include "cli/verbs/verb.h"

#include <span>
#include <string>
#include <vector>

namespace rlock::cli {

class OptionTable;

struct HelpWanted {
  bool brief = false;  // -h: options by name
  bool whole = false;  // --help: all
};

// Adds all options of the verb, -h and --help too; `wants_help` must outlive the parsing.
VerbAction add_verb_options(const Verb& verb, OptionTable& table, HelpWanted& wants_help);

// The name of the program in argv[0]: "rlock" or "rflock".
std::string_view program_of(std::span<const std::string> words);

// argv without its first word; `rflock` becomes the verb flock.
std::vector<std::string> args_of(std::span<const std::string> words);

// Runs the verb that `args`, without argv[0], names.
Result<RunEnd> dispatch(std::span<const std::string> args, const Environment& environment, Signals& signals);

}  // namespace rlock::cli
