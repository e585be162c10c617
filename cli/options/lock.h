// SPDX-License-Identifier: Apache-2.0
// The keys: which lock a verb is about, or which locks.
// The options that choose the kind of lock.
// Options that several verbs that take locks share: what values they may have.
// --label.
// --sync.
// --latest and --cancel-in-progress: which of several runs goes on.
#pragma once

#include "base/defaults.h"
#include "cli/options/option_table.h"
#include "lock/mode.h"
#include "lock/names.h"
#include "run/run.h"
#include "store/open.h"

#include <array>
#include <span>
#include <string>

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

struct RawMode {
  bool shared = false;
  bool exclusive = false;
  Text permits;
  Text format;
};

void add_mode_options(Options& options, RawMode& raw);
// For a verb that takes plain locks only: the options are parsed, so that the verb can refuse them, and help hides them.
void add_hidden_mode_options(Options& options, RawMode& raw);

// ErrorCode::usage: two of the options exclude each other.
Result<Mode> resolve_mode(const RawMode& raw);

// A third of the ttl must be enough for one round trip, and the rest for killing the job.
inline constexpr Millis shortest_ttl{100};
inline constexpr Millis longest_ttl = fence_memory;

inline constexpr DurationRule ttl_rule{"--ttl", shortest_ttl, longest_ttl, "30s"};
inline constexpr DurationRule fixed_lease_rule{"--lease", shortest_ttl, longest_ttl, "5m"};
inline constexpr NumberRule busy_code_rule{"--conflict-exit-code", 0, 255, "75"};

inline constexpr std::array on_lost_choices{Choice<OnLost>{"stop", OnLost::stop}, Choice<OnLost>{"warn", OnLost::warn}};

// The ttl that was given, or default_ttl.
Result<Millis> resolve_ttl(const Text& raw);

// The code that was given, or `default_code`.
Result<int> resolve_busy_code(const Text& raw, ExitCode default_code);

// The number of a signal, from its name or number. ErrorCode::usage names --signal.
Result<int> resolve_signal(std::string_view raw);

void add_label_option(Options& options, Text& raw);

// Empty when the option was not given. ErrorCode::usage: the label is longer than longest_label.
Result<std::string> resolve_label(const Text& raw);

void add_sync_option(Options& options, Text& raw);

// The number of replicas; 0 when the option was not given. ErrorCode::usage: there are several servers, which have no
// replica in common.
Result<unsigned> resolve_sync(const Text& raw, const ServerSpec& server);

struct RawConcurrency {
  bool latest = false;
  bool cancel_in_progress = false;
};

void add_concurrency_options(Options& options, RawConcurrency& raw);

// Sets the fields of `request`, of which locks, kind, server and wait are known already. ErrorCode::usage: they are about the
// one queue, or the one holder, of a lock.
Result<Done> resolve_concurrency(const RawConcurrency& raw, RunRequest& request);

}  // namespace rlock::cli
