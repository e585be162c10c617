// SPDX-License-Identifier: Apache-2.0
// One of the locks any of which will do: how a caller stands with it, and when to ask for it again. No input or output.
#pragma once

#include "base/rng.h"
#include "lock/barging.h"
#include "lock/store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rlock {

struct LockCandidate {
  const LockSpec& spec;
  std::size_t which;  // among those that were given

  Instant look_at{};  // when to ask; long ago: at once
  std::optional<Instant>
      claim_over;            // when somebody has to have confirmed what was handed to it, if we are to see to that
  std::optional<Busy> last;  // the last answer
  std::uint64_t ticket = 0;  // by which we are known in that line
  bool in_line = false;      // by the last answer
  bool to_leave = false;     // we are in line, or a request was sent whose answer we do not have
  bool is_sure = false;      // what was said to us there since the last answer, we heard
  bool must_hear_releases = false;  // we are first, and the holder is foreign: it speaks to nobody in person
  bool hears_releases = false;
  bool was_told = false;  // to look, since we last did
  Barging barging;

  // The answer to a request that was made in this manner.
  void refused(const Busy& busy, const AcquireOptions& asked, Instant sent_at, Rng& rng);
  void told(const Hint& hint, Instant now);
  void became_deaf();
  void left(Instant now);
  [[nodiscard]] Instant due_at() const { return claim_over ? std::min(look_at, *claim_over) : look_at; }
  void look_by(Instant when) { look_at = std::min(look_at, when); }
  [[nodiscard]] bool only_seen() const { return last && !in_line; }
  [[nodiscard]] bool is_first() const { return in_line && last->place == 0; }
};

// When to look again at a lock that is busy: the first few in line when its ttl is over, one after the other (for
// nothing is said when a lock expires), and everybody within 10 s, behind a
// hundred others, who would find out before, within 12 s.
Millis rest_after(const Busy& busy, Rng& rng);

}  // namespace rlock
