// SPDX-License-Identifier: Apache-2.0
// From argv to a verb and its end.
#pragma once

#include "cli/verbs/verb.h"

#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rlock::cli {

struct HelpWanted {
  bool brief = false;  // -h
  bool whole = false;  // --help
};

// Everything the verb has to tell CLI11, --help included; `wants_help` must outlive the parsing.
VerbAction add_verb_options(const Verb& verb, CLI::App& app, HelpWanted& wants_help);

// The name by which rlock was called: "rlock", or "rflock".
std::string_view program_of(std::span<const std::string> words);

// argv without its first word, which may be a verb of its own: `rflock` is `rlock flock`.
std::vector<std::string> args_of(std::span<const std::string> words);

// `args` without argv[0]. CLI11 hears of no verb but the one that was called: describing them all
// would cost more than the lock.
Result<RunEnd> dispatch(std::span<const std::string> args, const Environment& environment, Signals& signals);

}  // namespace rlock::cli
