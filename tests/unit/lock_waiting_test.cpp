// SPDX-License-Identifier: Apache-2.0
// When a waiter that hears nothing looks again: the price of silence.
#include "lock/waiting.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace rlock;
using namespace std::chrono_literals;

TEST_CASE("rest_after: the first few follow the ttl one after the other, all others look every ten seconds")
{
  struct Row { const char* why; std::optional<Millis> ttl; std::uint64_t place; Millis least; Millis most; };
  const Row rows[] = {
      {"the first, when the lock has expired", 2000ms, 0, 2001ms, 2003ms},
      {"the second gives it time to", 2000ms, 1, 2301ms, 2303ms},
      {"the fourth as well", 2000ms, 3, 2901ms, 2903ms},
      {"who is further back does not count on the ttl", 2000ms, 4, 10s, 10s},
      {"a long lease may end before its time", 30s, 0, 10s, 10s},
      {"a step back makes no rest longer", 9900ms, 3, 10s, 10s},
      {"no ttl", std::nullopt, 0, 10s, 10s},
      {"expired already", 0ms, 0, 1ms, 3ms},
  };
  SystemRng rng;
  for (const Row& row : rows) {
    CAPTURE(row.why);
    for (int i = 0; i < 20; ++i) {
      const Millis rest = rest_after({.ttl = row.ttl, .holder = {}, .place = row.place}, rng);
      CHECK(rest >= row.least);
      CHECK(rest <= row.most);
    }
  }
}
