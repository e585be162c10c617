// SPDX-License-Identifier: Apache-2.0
// The locks of which a waiter needs any one, in the order in which the waiter asks for them: the order of the caller, beginning
// at a random lock. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>
#include "base/clock.h"
#include "lock/requests.h"
#include "lock/store.h"
#include "lock/waiting.h"

namespace rlock {

// One of several locks of which a waiter needs any one: what the waiter knows of the lock, and when to ask the store for it
// again. Does no I/O. Not thread-safe.

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
  bool was_notified = false;      // a message has come since the last request
  Instant queued_at{};            // when the waiter asked for the first time since it is in the queue
  std::uint64_t first_place = 0;  // the place it got then
  ForeignUnlockPolling barging;

  // Takes the answer to a request with `options` that was sent at `sent_at`.
  void refused(const Busy& busy, const AcquireOptions& options, Instant sent_at, Rng& rng);
  void turned_away(const Busy& busy);  // by LockSpec::max_waiting
  void notified(const Hint& hint, Instant now);
  void stopped_listening();
  void released(Instant now);
  [[nodiscard]] Instant due_at() const { return confirmed_by ? std::min(ask_at, *confirmed_by) : ask_at; }
  void ask_by(Instant when) { ask_at = std::min(ask_at, when); }
  [[nodiscard]] bool only_probed() const { return last && !queued; }
  [[nodiscard]] bool is_full() const { return last && last->full > 0; }
  [[nodiscard]] bool is_first() const { return queued && last->waiters_ahead == 0; }
  // Whether the line in front is so long, and has moved so slowly, that the waiter need hear no message until it asks again.
  [[nodiscard]] bool is_far_back() const;
};

// How long a waiter that gets no message rests after this answer. The store publishes nothing when a lock expires. So the first
// waiters ask when the ttl of the lock is over, one after the other, and so does each waiter behind a holder that probably does not
// renew its lease any more. Every waiter asks within look_again_after, or a little later if many waiters are ahead. A waiter that is
// far behind a holder that renews asks no more often, because it is one of many.
Millis rest_after(const Busy& busy, Rng& rng);

class LockCandidates {
 public:
  // `specs` must not be empty, and must outlive this.
  LockCandidates(std::span<const LockSpec> specs, Rng& rng);

  // The candidate to ask for now; nullptr: none is due. Returns the same candidate until next_turn().
  LockCandidate* due(Instant now);
  void next_turn() { ++m_turn; }

  // Gives a ticket to each candidate that has none: a ticket that follows from the first ticket of the waiter. A waiter with a ticket
  // is in line already, so a lock that has turned it away is asked again.
  void assign_tickets(std::uint64_t first);

  [[nodiscard]] Instant next_due() const;
  void ask_all_at(Instant when);
  void ask_all_by(Instant when);

  // The candidate with the fewest waiters ahead by the last answers. At least one candidate must have an answer.
  [[nodiscard]] const LockCandidate& nearest() const;

  [[nodiscard]] std::size_t size() const { return m_candidates.size(); }
  auto begin() { return m_candidates.begin(); }
  auto end() { return m_candidates.end(); }

 private:
  std::vector<LockCandidate> m_candidates;
  std::size_t m_turn = 0;
};

}  // namespace rlock
