// SPDX-License-Identifier: Apache-2.0
// Hears the messages that a store sends to one owner about its locks: hand-over, release requests, releases.
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

// All messages about one lock since the last call of heard(). Messages may be lost, so a hint mostly tells when to ask.
struct Hint {
  std::optional<Millis> look_in;         // ask the store then
  bool next = false;                     // the owner is first in the queue
  std::optional<Millis> confirm_within;  // ask then: by then a hand-over is confirmed or (`next`) the lock is renewed
  std::optional<Handover> handover;      // the last one; missing also if another message says to ask. With look_in.
};
using Hints = std::vector<Hint>;  // one for each lock, in the order of the specs given to LockStore::listen

// Owned by the caller of LockStore::listen; outlives the store's connection. Not thread-safe.
class Listener {
 public:
  virtual ~Listener() = default;
  [[nodiscard]] virtual int fd() const = 0;  // readable: heard() may return a hint
  // Takes the messages that have arrived, of a flood only some; does not block. After an Error the listener is useless.
  virtual Result<Hints> heard(const Clock& clock) = 0;
  // From its return on, releases and deletions of lock number `which` give a hint. Rlock hands a lock over to a waiter
  // directly, so only foreign clients and the end of a queue announce a release. May be called again.
  virtual Result<Done> hear_releases(std::size_t which, const CallLimits& limit) = 0;
  // For a holder. From its return on, a grant of lock number `which` to another owner that found no holder gives a hint.
  // May be called again.
  virtual Result<Done> hear_takings(std::size_t which, const CallLimits& limit) = 0;
};

}  // namespace rlock
