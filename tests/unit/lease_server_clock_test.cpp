// SPDX-License-Identifier: Apache-2.0
#include "lease/renewal.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

constexpr Instant t0{};
constexpr Millis ttl = 30s;

ClockSample seen(Millis sent, Millis heard, Millis server)
{
  return {.sent_at = t0 + sent, .heard_at = t0 + heard, .server = 1'700'000'000s + server};
}

}  // namespace

TEST_CASE("server's clock: what goes beyond the time that answers take is a step, and a lease is trusted less")
{
  const ClockSample before = seen(0ms, 10ms, 5ms);
  struct Row {
    const char* why;
    ClockSample now;
    Millis ahead;
    Millis cut;
    const char* words;
  };
  const Row rows[] = {
      {"as ours", seen(10s, 10'010ms, 10'005ms), 0ms, 0ms, ""},
      {"a slow answer explains it", seen(10s, 14s, 13'900ms), 0ms, 0ms, ""},
      {"what it does not explain", seen(10s, 14s, 14'105ms), 100ms, 0ms, ""},
      {"ahead, as allowed for", seen(10s, 10'010ms, 10'105ms), 90ms, 0ms, ""},
      {"five per cent fast", seen(10s, 10'010ms, 10'515ms), 500ms, 1198ms, ": the server's clock jumped 500ms ahead"},
      {"a step", seen(10s, 10'010ms, 15'015ms), 5s, 10s, ": the server's clock jumped 5s ahead"},
      {"a step of more than all", seen(10s, 10'010ms, 3'610'015ms), 1h, 10s, ": the server's clock jumped 1h ahead"},
      {"or we stood still", seen(20ms, 30ms, 40'035ms), 40s, 10s, ": the server's clock jumped 40s ahead"},
      {"back", seen(10s, 10'010ms, -49'995ms), -1min + 10ms, 0ms, ": the server's clock jumped 1m back"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.why));
    CHECK(clock_step(before, row.now).count() == row.ahead.count());
    CHECK(lease_reduction(before, row.now, ttl).count() == row.cut.count());
    CHECK(clock_step_text(clock_step(before, row.now), ttl) == row.words);
  }
}
