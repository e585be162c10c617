// SPDX-License-Identifier: Apache-2.0
// "This lock is mine, here is the token": what renew, release and check begin with.
#pragma once

#include "cli/options/keys.h"
#include "cli/options/server.h"
#include "cli/verbs/verb.h"
#include "lock/store.h"

#include <span>
#include <string>

namespace rlock::cli {

struct RawTokenLock {
  RawKeys keys;
  RawServer server;
  Text token;
  bool json = false;
  bool quiet = false;
};

void add_token_lock_options(Options& options, RawTokenLock& raw);

struct TokenLock {
  LockName name;
  Hold hold;
};

// What was not typed comes from the environment, where a job and `acquire --export` have it: the key from RLOCK_KEY, the
// token from RLOCK_HELD, which knows the one of each key, or from RLOCK_TOKEN.
// Faults: usage (nothing typed and nothing there), config (what is there makes no sense).
Result<TokenLock> resolve_token_lock(const RawTokenLock& raw, std::span<const std::string> operands,
                                     const Environment& environment);

// Of the kind that the server says it is.
Result<LockSpec> lock_spec_of(const TokenLock& token_lock, Millis ttl, const OpenedStore& opened);

// Asks the server, and pushes the expiry back to `ttl` from now, or leaves it where it is: zero. Prints one JSON object
// if asked to and it is ours.
Result<RunEnd> renew_token_lock(const TokenLock& token_lock, Millis ttl, const RawTokenLock& raw, const Call& call);

// Releases it; whoever keeps it for us ends without a word.
Result<RunEnd> release_token_lock(const TokenLock& token_lock, const RawTokenLock& raw, const Call& call);

// Says on stderr, unless quiet, what became of it; exit 1.
RunEnd report_not_held(const TokenLock& token_lock, const std::string& what, const RawTokenLock& raw);
std::string reason_of_loss(const NotHeld& found);  // "expired or deleted", "force-unlocked by alice@web1 (pid 71)"

}  // namespace rlock::cli
