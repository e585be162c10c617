// SPDX-License-Identifier: Apache-2.0
// How often a listener of MongoDB reads the document of its lock. A pure function. Private to stores/mongo.
#pragma once

#include <algorithm>
#include <cstdint>
#include "base/clock.h"
#include "base/defaults.h"

namespace rlock::mongo {

// A listener must find a hand-over well before handover_confirmation is over.
inline constexpr Millis longest_pause = handover_confirmation / 2;

// Of a listener among those of its lock that are not silent, in the order in which they came; of several locks where it is nearest
// to the front.
struct ListenerPlace {
  std::int64_t place = 1;  // from 1
  bool is_alone = true;
};

// How long a listener that has heard nothing for `quiet` waits until it looks again. `look_time`: how long the last look took. The
// first listeners of a lock look most often, because its holder and the first in line are among them. Those far back do not look
// often after a message either: one that concerns them at once comes when they are in front. A server that is slow is asked less
// often, most of all by those far back. None waits longer than longest_pause.
inline Millis pause_between_looks(Millis quiet, const ListenerPlace& where, Millis look_time)
{
  constexpr int quiet_divisor = 8;
  constexpr Millis shortest_per_place{25};
  constexpr Millis longest_per_place{50};
  constexpr std::int64_t last_place = 20;   // those behind it look as often
  constexpr std::int64_t first_places = 2;  // the holder and the first in line
  constexpr std::int64_t most_look_times = 8;
  constexpr Millis first_pause{100};
  constexpr Millis long_quiet{60'000};
  constexpr Millis pause_when_long_quiet{250};
  const std::int64_t place = std::min(where.place, last_place);
  const bool looks_often = quiet < long_quiet || (place <= first_places && !where.is_alone);
  const Millis usual = looks_often ? first_pause : pause_when_long_quiet;
  const Millis pause =
      std::clamp(quiet / quiet_divisor, shortest_per_place * place, std::max(usual, longest_per_place * place));
  return std::min(longest_pause, std::max(pause, look_time * std::min(place, most_look_times)));
}

}  // namespace rlock::mongo
