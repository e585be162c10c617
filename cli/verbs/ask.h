// SPDX-License-Identifier: Apache-2.0
// What the verbs that ask a server begin with: its store, the one lock that they are about, and the past runs of locks.
#pragma once

#include "cli/options/lock.h"
#include "cli/options/server.h"
#include "cli/options/verb.h"

#include <memory>
#include <string>
#include <vector>

namespace rlock::cli {

// A store with the clock that it needs, for verbs that ask a server and print the answer.
struct OpenedStore {
  std::unique_ptr<BootClock> clock;
  std::unique_ptr<LockStore> store;
  Millis timeout;
  std::string server;  // its URL, without passwords
  std::string
      server_option;  // " -S @prod": what the user copies to another command; empty: the server was not named by -S
  [[nodiscard]] CallLimits limit() const { return {clock->now() + timeout, StopToken::never()}; }
  // For a question of many requests: each answer has the time limit, and all together have none.
  [[nodiscard]] PerAnswer per_answer(StopToken stop = StopToken::never()) const
  {
    return {*clock, timeout, {far_future, stop}};
  }
};
Result<OpenedStore> open_server(const RawServer& raw, const Environment& environment);

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

// Fills LockState::runs. They stay empty where the user may not read the history.
Result<Done> add_runs(const OpenedStore& opened, LogPart part, std::vector<LockState>& states);
Result<Done> add_runs(const OpenedStore& opened, LogPart part, LockState& state);

}  // namespace rlock::cli
