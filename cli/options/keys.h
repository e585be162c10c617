// SPDX-License-Identifier: Apache-2.0
// The keys: which lock a verb is about, or which locks.
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
void add_key_list_options(Options& options, RawKeys& raw);  // the same for a verb that takes all keys together

// The keys of --key and `operands` (`rlock status stock`), each after the prefix. ErrorCode::usage: there is none, or more
// than one for resolve_key. Other errors are those of LockName::parse.
Result<std::vector<LockName>> resolve_keys(const RawKeys& raw, std::span<const std::string> operands);
Result<LockName> resolve_key(const RawKeys& raw, std::span<const std::string> operands);
// The same for a verb that takes the locks: also the error of check_can_be_taken.
Result<std::vector<LockName>> resolve_keys_to_take(const RawKeys& raw);
Result<LockName> resolve_key_to_take(const RawKeys& raw, std::span<const std::string> operands = {});

// `number`: where the caller finds the number of the lock that was taken.
void add_shards_option(Options& options, Text& raw, const char* number);
// KEY:0 to KEY:N-1, which the caller takes; empty when the option was not given.
Result<std::vector<LockName>> resolve_shards(const Text& raw, const LockName& key);

// The glob of all keys that match `pattern` after the prefix. Special characters of the prefix are escaped.
std::string resolve_pattern(const RawKeys& raw, std::string_view pattern);
// ErrorCode::usage: `verb` was given more than one pattern.
Error several_patterns(std::string_view verb);

}  // namespace rlock::cli
