// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <doctest/doctest.h>

using namespace rlock;

TEST_CASE("duration: what people type")
{
  struct Row {
    const char* text;
    long long ms;
  };  // -1: refused
  const Row rows[] = {
      {"10", 10'000},
      {"1.5s", 1500},
      {"200ms", 200},
      {"5m", 300'000},
      {"1h", 3'600'000},
      {"1d", 86'400'000},
      {"1m30s", 90'000},
      {"0.3", 300},
      {".5s", 500},
      {"0", 0},
      {"0ms", 0},
      {"0.1ms", 1},
      {"3650d", 315'360'000'000},
      {"2w", 1'209'600'000},
      {"1week", 604'800'000},
      {"2weeks", 1'209'600'000},
      {"1day", 86'400'000},
      {"2days", 172'800'000},
      {"1hour", 3'600'000},
      {"2hours", 7'200'000},
      {"5min", 300'000},
      {"1minute", 60'000},
      {"10minutes", 600'000},
      {"1second", 1000},
      {"90seconds", 90'000},
      {"1minute30seconds", 90'000},
      {"90sec", 90'000},
      {"1w2d", 777'600'000},
      {"1hour30min", 5'400'000},
      {"1h30min10sec", 5'410'000},
      {"5mins", -1},
      {"1secs", -1},
      {"1min1m", -1},
      {"", -1},
      {"s", -1},
      {"-1", -1},
      {"-1s", -1},
      {"1x", -1},
      {"abc", -1},
      {"1s1m", -1},
      {"1s1s", -1},
      {"1 s", -1},
      {"1.2.3", -1},
      {"1m30", -1},
      {"+5", -1},
      {"1e3", -1},
      {"99999999999999999999s", -1},
      {"4000d", -1},
      {".", -1},
      {"inf", -1},
      {"5S", -1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto parsed = parse_duration(row.text);
    CHECK((parsed ? parsed->count() : -1) == row.ms);
  }
}

TEST_CASE("duration: too long and malformed are told apart")
{
  const auto flaw = [](const char* text) { return std::get<DurationFlaw>(read_duration(text)); };
  for (const char* text : {"4000d", "600w", "99999999999999999999s", "99999999999999999999", "3660d1h"}) {
    CAPTURE(text);
    CHECK(flaw(text) == DurationFlaw::too_long);
  }
  for (const char* text : {"", "1x", "-1", "1s1m", "99999999999999999999x", "."}) {
    CAPTURE(text);
    CHECK(flaw(text) == DurationFlaw::malformed);
  }
}

TEST_CASE("duration: shown, and read back")
{
  for (const long long ms : {0LL, 1LL, 999LL, 1000LL, 90'000LL, 3'661'001LL, 86'400'000LL}) {
    CAPTURE(ms);
    CHECK(parse_duration(show(Millis{ms})) == Millis{ms});
  }
  CHECK(show(Millis{90'250}) == "1m30s250ms");
  CHECK(show_roughly(Millis{340}) == "340ms");
  CHECK(show_roughly(Millis{3'017}) == "3s");
  CHECK(show_roughly(Millis{7'505'000}) == "2h 5m");
}
