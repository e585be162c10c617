// SPDX-License-Identifier: Apache-2.0
// One of several locks of which a waiter needs any one: what the waiter knows of the lock, and when to ask the store for it
// again. Does no I/O. Not thread-safe.
#pragma once

#include "base/rng.h"
#include "lock/barging.h"
#include "lock/listener.h"
#include "lock/requests.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rlock {

struct LockCandidate {
  const LockSpec& spec;
  std::size_t which;  // index in the list of specs that the caller gave

  Instant ask_at{};                     // when to ask the store; in the past: now
  std::optional<Instant> confirmed_by;  // the hand-over must be confirmed, or the lock renewed, until then; else ask
  std::optional<Busy> last;             // the last answer
  Instant asked_at{};                   // when the request that it answers was sent
  std::optional<Handover> handover;     // by the last message, since the last answer
  std::uint64_t ticket = 0;             // the waiter's arrival in this queue; 0: not queued yet
  bool queued = false;                  // by the last answer
  bool needs_release = false;           // queued, or a request was sent and not answered
  bool queue_checked = false;           // the waiter has listened without a gap since the last answer
  bool must_hear_releases = false;      // first in the queue behind a foreign holder, which hands over to no waiter
  bool hears_releases = false;
  bool was_notified = false;  // by a message, since the last request
  Barging barging;

  // Takes the answer to a request that was sent with these options at `sent_at`.
  void refused(const Busy& busy, const AcquireOptions& options, Instant sent_at, Rng& rng);
  void notified(const Hint& hint, Instant now);
  void stopped_listening();
  void released(Instant now);
  [[nodiscard]] Instant due_at() const { return confirmed_by ? std::min(ask_at, *confirmed_by) : ask_at; }
  void ask_by(Instant when) { ask_at = std::min(ask_at, when); }
  [[nodiscard]] bool only_probed() const { return last && !queued; }
  [[nodiscard]] bool is_first() const { return queued && last->waiters_ahead == 0; }
};

// How long a waiter that gets no message rests after this answer: the store publishes nothing when a lock expires, so the
// first few in the queue ask when its ttl is over, one after the other, and every waiter asks within look_again_after, or a
// little later behind many others.
Millis rest_after(const Busy& busy, Rng& rng);

}  // namespace rlock
