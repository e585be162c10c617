// SPDX-License-Identifier: Apache-2.0
// What may come next on a command line that is being typed; what the completions of all shells ask.
#pragma once

#include "base/result.h"
#include "cli/options/environment.h"

#include <span>
#include <string>
#include <vector>

namespace rlock::cli {

struct Candidate {
  std::string word;
  std::string about;  // may be empty
};

// Who knows the rest: the shell completes names of files, and the words of another command.
struct Completion {
  enum class Kind { words, files, command };
  Kind kind = Kind::words;
  std::size_t command_at = 0;         // Kind::command: which of the words is the command; the first is 0
  std::vector<Candidate> candidates;  // Kind::words: those that begin with what was typed
};

// `words` are those after "rlock", the last one as far as it is typed. Asks the server that the words before it mean, half
// a second at most, when the name of a lock comes next; what cannot be had is no candidate, never an error.
Completion complete(std::span<const std::string> words, const Environment& environment);

}  // namespace rlock::cli
