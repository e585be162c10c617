// SPDX-License-Identifier: Apache-2.0
// One key and its server: what ttl, wait, history and forget begin with.
#pragma once

#include "cli/options/keys.h"
#include "cli/options/server.h"
#include "cli/verbs/verb.h"

namespace rlock::cli {

struct RawOneLock {
  RawKeys keys;
  RawServer server;
};

struct OneLock {
  LockName name;
  OpenedStore opened;
};

// The lock that the options and the operands of `call` name, and its store.
Result<OneLock> open_lock(const RawOneLock& raw, const Call& call);

}  // namespace rlock::cli
