// SPDX-License-Identifier: Apache-2.0
// What a verb is. Parsing, help, the manual pages and the completions are made of these values.
#pragma once

#include "base/exit_code.h"
#include "base/result.h"
#include "cli/options/environment.h"
#include "cli/options/option_table.h"
#include "run/request.h"

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlock {
class Signals;
}

namespace rlock::cli {

// The words that are not options.
enum class Operands {
  none,
  anywhere,  // options may follow them: rlock status stock --json
  command,   // the first one ends the options: the rest is the job's
  getopt,    // the same; a long option may be shortened while it stays unambiguous, and no option forbids another
};

// When a verb ends with an exit code, in the words of that verb.
struct ExitLine {
  std::variant<ExitCode, std::string_view> code;  // or words, such as "the job's own"
  std::string_view meaning;
};

// What a key does on the live screen of a verb.
struct KeyLine {
  std::string_view key;
  std::string_view meaning;
};

// What an action gets of the command line and the process. All must outlive the call.
struct Call {
  std::vector<std::string> operands;
  const Environment& environment;
  Signals& signals;
  std::span<const Given> options = {};  // that have had their effects: of the command line, then of the config file
};

// Runs the verb; called after the options have been parsed. Prints on stdout; the caller prints the Error.
using VerbAction = std::function<Result<RunEnd>(const Call&)>;

// Verbs that ask no server.
inline constexpr std::initializer_list<ExitCode> printing_codes{ExitCode::usage, ExitCode::os};
// Verbs that ask a server.
inline constexpr std::initializer_list<ExitCode> asking_codes{ExitCode::usage, ExitCode::unavailable, ExitCode::os,
                                                              ExitCode::refused, ExitCode::config};
// Verbs that run a job.
inline constexpr std::initializer_list<ExitCode> job_codes{
    ExitCode::usage,     ExitCode::unavailable,    ExitCode::internal, ExitCode::os,
    ExitCode::busy,      ExitCode::refused,        ExitCode::config,   ExitCode::lost,
    ExitCode::time_over, ExitCode::not_executable, ExitCode::not_found};
inline constexpr ExitLine job_exit{"the job's own", "the job ran; when a signal killed it, rlock dies of the same one"};

// A constant at namespace scope, so that its lists live as long as the program.
struct Verb {
  std::string_view name;
  std::string_view summary;   // one line, lower case
  std::string_view synopsis;  // what follows the name
  std::initializer_list<std::string_view> examples;
  std::initializer_list<ExitLine>
      own_exits;  // codes whose meaning is the verb's own; they come first, or by their number
  std::initializer_list<ExitCode> common_exits =
      asking_codes;  // codes with the meaning of the table in base/exit_code.h
  Operands operands = Operands::anywhere;
  std::initializer_list<KeyLine> keys = {};                    // empty: no live screen
  std::string_view other_synopsis = {};                        // of a second form of the call; empty: there is none
  std::vector<std::string_view> (*more_examples)() = nullptr;  // those of the stores
  // Adds the verb's options; the action owns the structure that they are parsed into.
  VerbAction (*add_options)(OptionTable& options);
};

// One or two.
inline std::vector<std::string_view> synopses_of(const Verb& verb)
{
  return verb.other_synopsis.empty() ? std::vector{verb.synopsis} : std::vector{verb.synopsis, verb.other_synopsis};
}

inline std::vector<std::string_view> examples_of(const Verb& verb)
{
  std::vector<std::string_view> all = verb.examples;
  const auto more = verb.more_examples == nullptr ? std::vector<std::string_view>() : verb.more_examples();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Verb::add_options of a verb whose options are parsed into a Raw.
template <typename Raw, void (*add)(OptionTable&, Raw&), Result<RunEnd> (*execute)(const Raw&, const Call&)>
VerbAction bound(OptionTable& options)
{
  auto raw = std::make_shared<Raw>();
  add(options, *raw);
  return [raw](const Call& call) { return execute(*raw, call); };
}

// The verbs in the order in which help shows them.
using Verbs = std::span<const Verb* const>;

// Adds all options of the verb, -h and --help too. These two have no effect: the caller looks for them in the words.
VerbAction add_verb_options(const Verb& verb, OptionTable& table);

inline RunEnd ended(ExitCode code) { return ExitWith{static_cast<int>(code)}; }

}  // namespace rlock::cli
