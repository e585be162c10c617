// SPDX-License-Identifier: Apache-2.0
// The table of verbs, and the way from argv to a verb and its end. A new verb is declared here, defined in a file of its own or in
// that of a related verb, and has a place in the table of dispatch.cpp.
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
extern const Verb freeze_verb;
extern const Verb thaw_verb;
extern const Verb events_verb;
extern const Verb config_verb;
extern const Verb doctor_verb;
extern const Verb bench_verb;
extern const Verb acl_verb;
extern const Verb completion_verb;
extern const Verb version_verb;
extern const Verb help_verb;

inline constexpr std::string_view flock_program = "rflock";  // the program under this name is the verb flock

Verbs all_verbs();  // in the order in which help shows them

// Finds a verb by its name. ErrorCode::usage if there is none; the error names a similar verb.
Result<const Verb*> find_verb(std::string_view name);

// The name of the program in argv[0]: "rlock" or "rflock".
std::string_view program_of(std::span<const std::string> words);

// argv without its first word; `rflock` becomes the verb flock.
std::vector<std::string> args_of(std::span<const std::string> words);

// Runs the verb that `args`, without argv[0], names.
Result<RunEnd> dispatch(std::span<const std::string> args, const Environment& environment, Signals& signals);

}  // namespace rlock::cli
