// SPDX-License-Identifier: Apache-2.0
// What the words of a command line set, for tests of the options of a verb.
#pragma once

#include "cli/options/parse_words.h"

#include <string>
#include <vector>

namespace rlock::test {

// Lets the options have their effects and returns the operands.
inline Result<std::vector<std::string>> operands_of(const cli::OptionTable& known, const std::vector<std::string>& args,
                                                    cli::Operands operands)
{
  ASSIGN_OR_RETURN(const auto words, cli::parse_words(known, args, operands));
  RETURN_IF_ERROR(cli::apply_options(known, words.options, operands));
  return words.operands;
}

}  // namespace rlock::test
