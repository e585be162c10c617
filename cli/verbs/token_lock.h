// SPDX-License-Identifier: Apache-2.0
// A lock that the caller names by its token: the options of renew, release and check, and what these verbs do.
#pragma once

#include "cli/verbs/ask.h"
#include "lock/store.h"
#include "run/environment.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rlock::cli {

struct RawTokenLock {
  RawKeys keys;
  RawServer server;
  OptionText token;
  bool json = false;
  bool quiet = false;
  std::optional<int> exit_code = std::nullopt;  // of release
};

void add_token_lock_options(OptionTable& options, RawTokenLock& raw);

struct TokenLock {
  LockName name;
  Hold hold;
  std::optional<Shard> shard = std::nullopt;  // where RLOCK_SHARD is about this lock
};

using TokenLocks = std::vector<TokenLock>;  // at least one, each once

// A missing option is taken from the environment of a job or of `acquire --export`: the key from RLOCK_KEY, with those that RLOCK_HELD
// has under the same token; the token from RLOCK_HELD, which has one for each key, or from RLOCK_TOKEN.
// ErrorCode::usage: neither an option nor a variable. ErrorCode::config: a variable has a value that makes no sense.
Result<TokenLocks> resolve_token_locks(const RawTokenLock& raw, std::span<const std::string> operands,
                                       const Environment& environment);

// Releases the locks. Their keeper, if there is one, ends silently. Exits with 1 if the token does not hold one of them.
Result<RunEnd> release_token_locks(const TokenLocks& token_locks, const RawTokenLock& raw, const Call& call);

}  // namespace rlock::cli
