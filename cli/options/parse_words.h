// SPDX-License-Identifier: Apache-2.0
// Parses the words after the verb into options and operands, with CLI11, and lets the options have their effects.
#pragma once

#include "cli/options/option_table.h"
#include "cli/options/verb.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

struct ParsedWords {
  std::vector<Given> options;         // in the order of the words
  std::vector<std::string> operands;  // unchanged, byte for byte

  [[nodiscard]] bool has(std::string_view name) const;  // "--help"
};

// Names the verbs that have an option, such as "rlock once"; empty: none has.
using OtherVerbs = std::function<std::string(std::string_view option)>;

// `args`: the words after the verb. ErrorCode::usage: an option that `known` does not have, an option without its value, or a
// flag with a value. `other_verbs`: asked about an unknown option; may be empty.
Result<ParsedWords> parse_words(const OptionTable& known, std::span<const std::string> args, Operands operands,
                                const OtherVerbs& other_verbs = {});

// Whether one of the two excludes the other, see Option::excludes.
bool are_exclusive(const Given& one, const Given& other);

// OptionTable::apply for the options of a command line. ErrorCode::usage: two of them exclude each other, one needs another, or a
// value makes no sense. The options have their effects all the same.
Result<Done> apply_options(const OptionTable& known, std::span<const Given> options, Operands operands);

}  // namespace rlock::cli
