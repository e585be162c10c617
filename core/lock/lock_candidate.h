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
  std::size_t which;  // the index in the caller's list of specs

  Instant ask_at{};                     // when to ask the store; a past time: now
  std::optional<Instant> confirmed_by;  // ask at this time, unless a message or an answer comes before
  std::optional<Busy> last;             // the last answer
  Instant asked_at{};                   // when the request of the last answer was sent
  std::optional<Handover> handover;     // the last message since the last answer, if it is a hand-over
  std::uint64_t ticket = 0;             // the waiter's arrival in this queue; 0: not queued yet
  bool queued = false;                  // the last answer said so
  bool needs_release = false;           // the waiter is queued, or a request of it was not answered
  bool queue_checked = false;           // the waiter has listened without a gap since the last answer
  bool must_hear_releases = false;      // the waiter is first behind a foreign holder, which hands over to no waiter
  bool hears_releases = false;
  bool was_notified = false;  // a message has come since the last request
  Barging barging;

  // Takes the answer to a request with `options` that was sent at `sent_at`.
  void refused(const Busy& busy, const AcquireOptions& options, Instant sent_at, Rng& rng);
  void notified(const Hint& hint, Instant now);
  void stopped_listening();
  void released(Instant now);
  [[nodiscard]] Instant due_at() const { return confirmed_by ? std::min(ask_at, *confirmed_by) : ask_at; }
  void ask_by(Instant when) { ask_at = std::min(ask_at, when); }
  [[nodiscard]] bool only_probed() const { return last && !queued; }
  [[nodiscard]] bool is_first() const { return queued && last->waiters_ahead == 0; }
};

// How long a waiter that gets no message rests after this answer. The store publishes nothing when a lock expires. So the first
// few waiters ask when the ttl of the lock is over, one after the other, and every waiter asks within look_again_after, or a
// little later if many waiters are ahead.
Millis rest_after(const Busy& busy, Rng& rng);

}  // namespace rlock
