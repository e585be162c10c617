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

struct RawClaim {
  RawKeys keys;
  RawServer server;
  Text token;
  bool json = false;
  bool quiet = false;
};

void describe_claim(Options& options, RawClaim& typed);

struct Claim {
  LockName name;
  Hold hold;
};

// What was not typed comes from the environment, where a job and `acquire --export` have it: the key from RLOCK_KEY, the
// token from RLOCK_HELD, which knows the one of each key, or from RLOCK_TOKEN.
// Faults: usage (nothing typed and nothing there), config (what is there makes no sense).
Result<Claim> resolve_claim(const RawClaim& typed, std::span<const std::string> operands,
                            const Environment& environment);

// Of the kind that the server says it is.
Result<LockSpec> spec_of(const Claim& claim, Millis ttl, const OpenedStore& opened);

// Asks the server, and pushes the expiry back to `ttl` from now, or leaves it where it is: zero. Prints one JSON object
// if asked to and it is ours.
Result<RunEnd> affirm(const Claim& claim, Millis ttl, const RawClaim& typed, const Call& call);

// Releases it; whoever keeps it for us ends without a word.
Result<RunEnd> release_all(const Claim& claim, const RawClaim& typed, const Call& call);

// Says on stderr, unless quiet, what became of it; exit 1.
RunEnd not_ours(const Claim& claim, const std::string& what, const RawClaim& typed);
std::string what_became_of(const NotOurs& found);  // "expired or deleted", "force-unlocked by alice@web1 (pid 71)"

}  // namespace rlock::cli
