// SPDX-License-Identifier: Apache-2.0
// Which lock a verb is about, or which locks: their keys, and the kind of lock.
#pragma once

#include "cli/options/option_table.h"
#include "lock/names.h"
#include "run/request.h"

#include <span>
#include <string>
#include <vector>

namespace rlock::cli {

struct RawKeys {
  std::vector<std::string> keys;
  std::string prefix;
};

constexpr OptionRow<RawKeys> key_row(const char* help, const char* value = "KEY")
{
  return {{.names = "-k,--key", .value = value, .help = help, .repeats = true}, set<&RawKeys::keys>};
}
inline constexpr OptionRow<RawKeys> one_key_row = key_row("name of the lock; on Redis it is the key");
inline constexpr OptionRow<RawKeys> some_keys_row = key_row("name of a lock; may be given several times");
// For a verb that takes all keys together.
inline constexpr OptionRow<RawKeys> all_keys_row =
    key_row("name of the lock; on Redis it is the key; given several times: rlock takes all of the locks or none");
inline constexpr OptionRow<RawKeys> prefix_row{
    {.names = "--prefix", .value = "TEXT", .help = "text that rlock puts before every key"}, set<&RawKeys::prefix>};
// --key and --prefix.
void add_key_options(OptionTable& options, RawKeys& raw, const OptionRow<RawKeys>& key = one_key_row);

// The keys of --key and `operands` (`rlock status stock`), each after the prefix. ErrorCode::usage: there is none, or more
// than one for resolve_key. Other errors are those of LockName::parse.
Result<std::vector<LockName>> resolve_keys(const RawKeys& raw, std::span<const std::string> operands);
Result<LockName> resolve_key(const RawKeys& raw, std::span<const std::string> operands);
// The same for a verb that takes the locks: also the error of check_can_be_taken.
Result<std::vector<LockName>> resolve_keys_to_take(const RawKeys& raw, std::span<const std::string> operands = {});
Result<LockName> resolve_key_to_take(const RawKeys& raw, std::span<const std::string> operands = {});

// The glob of all keys that match `pattern` after the prefix. Special characters of the prefix are escaped.
std::string resolve_pattern(const RawKeys& raw, std::string_view pattern);
// ErrorCode::usage: `verb` was given more than one pattern.
Error several_patterns(std::string_view verb);

// The options that choose the kind of lock. `group`: "" for a verb that takes no shared locks: the options are parsed, so that the
// verb can refuse them, and help hides them, but for --format.
void add_kind_options(OptionTable& options, RunRequest& request, std::string_view group = default_group);

}  // namespace rlock::cli
