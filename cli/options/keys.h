// SPDX-License-Identifier: Apache-2.0
// Which lock, or locks.
#pragma once

#include "cli/options/options.h"
#include "lock/names.h"

#include <span>

namespace rlock::cli {

struct RawKeys {
  std::vector<std::string> keys;
  Text prefix;
};

void add_prefix_option(Options& options, RawKeys& raw);
void add_key_options(Options& options, RawKeys& raw);       // --key and --prefix
void add_key_list_options(Options& options, RawKeys& raw);  // where they are one lock together

// `operands` are keys too: `rlock status stock` is what everybody types first. Errors: ErrorCode::usage
// (none, or more than one for meant_key), and those of LockName::parse.
Result<std::vector<LockName>> resolve_keys(const RawKeys& raw, std::span<const std::string> operands);
Result<LockName> resolve_key(const RawKeys& raw, std::span<const std::string> operands);

// `how_told`: where the caller finds the number of the lock that was taken.
void add_shards_option(Options& options, Text& raw, std::string_view how_told);
// KEY:0 to KEY:N-1; empty where `typed` is missing.
Result<std::vector<LockName>> resolve_shards(const Text& raw, const LockName& key);

// The glob of all keys that match `pattern` after the prefix, in which nothing is special.
std::string resolve_pattern(const RawKeys& raw, std::string_view pattern);

}  // namespace rlock::cli
