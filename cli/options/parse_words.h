// SPDX-License-Identifier: Apache-2.0
// Parses the words after the verb into options and operands, with CLI11.
#pragma once

#include "cli/options/verb.h"

#include <span>
#include <string>
#include <vector>

namespace rlock::cli {

class OptionTable;

struct ParsedWords {
  std::vector<std::string>
      options;  // a name or a value in each element, in the order of the words: "--wait" "10s", "-n"
  std::vector<std::string> operands;  // unchanged, byte for byte
};

// `args`: the words after the verb. ErrorCode::usage: an option that `known` does not have, an option without its value, or a
// flag with a value.
Result<ParsedWords> parse_words(const OptionTable& known, std::span<const std::string> args, Operands operands);

// Gives the targets of the options what `words`, which was made with these options, has for them.
void fill_targets(const OptionTable& known, const ParsedWords& words);

}  // namespace rlock::cli
