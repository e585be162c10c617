// SPDX-License-Identifier: Apache-2.0
// The table of verbs. A new verb is declared here, defined in a file of its own, and has a place in table.cpp.
// From argv to a verb and its end.
#pragma once

#include "cli/options/verb.h"

#include <span>
#include <string>
#include <vector>

namespace rlock::cli {

extern const Verb run_verb;
extern const Verb flock_verb;
extern const Verb once_verb;
extern const Verb forget_verb;
extern const Verb history_verb;
extern const Verb acquire_verb;
extern const Verb renew_verb;
extern const Verb release_verb;
extern const Verb check_verb;
extern const Verb status_verb;
extern const Verb ttl_verb;
extern const Verb list_verb;
extern const Verb watch_verb;
extern const Verb wait_verb;
extern const Verb force_unlock_verb;
extern const Verb events_verb;
extern const Verb doctor_verb;
extern const Verb bench_verb;
extern const Verb acl_verb;
extern const Verb completion_verb;
extern const Verb version_verb;
extern const Verb help_verb;

std::span<const Verb* const> all_verbs();  // in the order in which help shows them

// Finds a verb by its name. ErrorCode::usage if there is none; the error names a similar verb.
Result<const Verb*> find_verb(std::string_view name);

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
