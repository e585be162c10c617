// SPDX-License-Identifier: Apache-2.0
// Which locks the operands "KEY|GLOB…" of a verb mean. A lock that is free is known while the server keeps its events or its runs, or
// the success that `rlock once` remembers.
#pragma once

#include "cli/options/lock.h"
#include "cli/verbs/ask.h"

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlock::cli {

struct Pattern {
  std::string glob;
};
using Subject = std::variant<LockName, Pattern>;

// Whether an operand with this text is a pattern.
bool is_glob(std::string_view word);

// --key is always a name. Empty: neither was given.
Result<std::vector<Subject>> resolve_subjects(const RawKeys& raw, std::span<const std::string> operands);

// The locks of --key, whether the server knows them or not, and those that the server knows and that match a pattern, each once, in
// the order of the operands. Without both: all that the server knows.
Result<std::vector<LockName>> known_locks(const OpenedStore& opened, const RawKeys& raw,
                                          std::span<const std::string> operands);

}  // namespace rlock::cli
