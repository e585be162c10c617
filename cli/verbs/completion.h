// SPDX-License-Identifier: Apache-2.0
// What may come next on a command line that the user is typing. The completion scripts of all shells ask for it.
#pragma once

#include "cli/options/environment.h"

#include <span>
#include <string>
#include <vector>

namespace rlock::cli {

struct Candidate {
  std::string word;
  std::string about;  // a description; may be empty
};

// Candidates, or a part that the shell completes itself: file names, or the words of another command.
struct Completion {
  enum class Kind { words, files, command };
  Kind kind = Kind::words;
  std::size_t command_at = 0;         // Kind::command: index of the command in the words
  std::vector<Candidate> candidates;  // Kind::words: those that begin with the unfinished word
};

// `words` are the words after "rlock", the last one unfinished. For the name of a lock, asks the server that the words before
// name, for half a second at most; when that fails there are no candidates.
Completion complete(std::span<const std::string> words, const Environment& environment);

}  // namespace rlock::cli
