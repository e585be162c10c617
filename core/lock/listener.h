// SPDX-License-Identifier: Apache-2.0
// Receives the messages that a store sends to one owner about its locks: hand-overs, release requests, releases.
#pragma once

#include "base/call_limits.h"
#include "base/clock.h"
#include "base/result.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rlock {

// The message with which a store hands a lock over to a waiter. The lock belongs to the waiter then, for a short lease.
struct Handover {
  std::uint64_t fence;
  std::chrono::microseconds at;  // when, by the server's clock, since 1970
  Millis lease;
};

// What the messages about one lock since the last call of heard() mean. Messages may be lost, so a hint mostly says when to ask
// the store.
struct Hint {
  std::optional<Millis> look_in;  // ask the store after this time; nullopt: no message says so
  bool next = false;              // the owner is first in the queue
  std::optional<Millis>
      confirm_within;  // ask after this time, in which a hand-over is confirmed or (`next`) the lock is renewed
  std::optional<Handover>
      handover;  // the last hand-over, beside look_in; nullopt: none, or another message says to ask
};
using Hints = std::vector<Hint>;  // one for each lock, in the order of the specs given to LockStore::listen

// Ownership: the caller of LockStore::listen owns the listener, which may outlive the store's connection. Threads: not
// thread-safe.
class Listener {
 public:
  virtual ~Listener() = default;
  [[nodiscard]] virtual int fd() const = 0;  // readable: heard() may return a hint
  // Takes the messages that have arrived, or some of them if there are very many. Does not block. After an Error the listener is
  // useless.
  virtual Result<Hints> heard(const Clock& clock) = 0;
  // After the return, each release and deletion of lock number `which` gives a hint. rlock hands a lock over to a waiter
  // directly, so only foreign clients and the end of a queue announce a release. May be called again.
  virtual Result<Done> hear_releases(std::size_t which, const CallLimits& limit) = 0;
  // For a holder: after the return, a grant of lock number `which` that found no holder gives a hint. May be called again.
  virtual Result<Done> hear_takings(std::size_t which, const CallLimits& limit) = 0;
};

}  // namespace rlock
