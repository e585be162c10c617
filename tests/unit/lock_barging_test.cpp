// SPDX-License-Identifier: Apache-2.0
#include "lock/waiting.h"

#include <doctest/doctest.h>

using namespace rlock;

TEST_CASE("barging: a waiter that loses for 300 ms insists for 50, and only behind a foreign holder")
{
  constexpr Instant t0 = Instant{} + Millis{1000};
  ForeignUnlockPolling barging;
  CHECK_FALSE(barging.must_poll(t0, true, true));
  CHECK_FALSE(barging.must_poll(t0 + Millis{300}, true, true));
  CHECK(barging.must_poll(t0 + Millis{301}, true, true));
  CHECK(barging.must_poll(t0 + Millis{350}, true, false));
  CHECK_FALSE(barging.must_poll(t0 + Millis{351}, true, false));

  CHECK_FALSE(barging.must_poll(t0 + Millis{400}, true, true));
  CHECK_FALSE(barging.must_poll(t0 + Millis{500}, false, false));  // an rlock holder again: it starts anew
  CHECK_FALSE(barging.must_poll(t0 + Millis{900}, true, true));
}
