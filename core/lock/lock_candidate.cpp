// SPDX-License-Identifier: Apache-2.0
#include "lock/lock_candidate.h"

#include "base/defaults.h"

#include <utility>

namespace rlock {
namespace {

constexpr std::uint64_t crowd = 100;   // from that place on nobody is missed for
constexpr Millis further_rest{2'000};  // a while: a thousand together cost less than 100 commands a second
constexpr std::uint64_t vanguard = 4;  // how many watch the ttl of the lock itself
constexpr Millis step_back{300};       // between one of these and the next
constexpr Millis silent_pause{100};    // between looks at a holder that tells nobody when it is done

Millis upto(Rng& rng, Millis most) { return Millis{below(rng, static_cast<std::uint64_t>(most.count()) + 1)}; }

}  // namespace

void LockCandidate::refused(const Busy& busy, const AcquireOptions& asked, Instant sent_at, Rng& rng)
{
  last = busy;
  claim_over.reset();
  if (!asked.queues) {
    return;
  }
  in_line = true;
  to_leave = true;
  ticket = busy.ticket;
  must_hear_releases = is_first() && busy.holder && !busy.holder->info;
  look_at = sent_at + rest_after(busy, rng);
  if (barging.insists(sent_at, must_hear_releases, std::exchange(was_told, false))) {
    look_at = sent_at + Millis{1};
  }
}

void LockCandidate::told(const Hint& hint, Instant now)
{
  if (hint.next) {
    claim_over.reset();
  }
  if (hint.claim_in) {
    claim_over = now + *hint.claim_in + Millis{1};
  }
  if (hint.look_in) {
    was_told = true;
    look_by(now + *hint.look_in);
  }
}

void LockCandidate::became_deaf()
{
  is_sure = false;
  hears_releases = false;
}

// The ticket stays ours: who comes back stands where it stood.
void LockCandidate::left(Instant now)
{
  last.reset();
  in_line = false;
  to_leave = false;
  claim_over.reset();
  look_at = now;
}

Millis rest_after(const Busy& busy, Rng& rng)
{
  if (busy.again_in) {
    return std::min(look_again_after, *busy.again_in);
  }
  if (busy.silent && busy.place == 0) {
    return silent_pause / 2 + upto(rng, silent_pause / 2);
  }
  if (busy.place >= crowd) {
    return look_again_after + upto(rng, further_rest);
  }
  if (!busy.ttl || busy.place >= vanguard) {
    return look_again_after;
  }
  const Millis turn = step_back * static_cast<std::int64_t>(busy.place);
  return std::min(look_again_after, *busy.ttl + turn + Millis{1} + upto(rng, Millis{2}));
}

}  // namespace rlock
