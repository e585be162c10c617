// SPDX-License-Identifier: Apache-2.0
// What the judge reads in the files of jobs and rlocks.
#include "judge/evidence.h"

#include <doctest/doctest.h>

using namespace rlock;
using namespace rlock::judge;

TEST_CASE("judge: the evidence of a job is read line by line")
{
  Evidence evidence;
  CHECK(add_lines("B 1000 7 42 k\nH 2000 7\nH 30", evidence) == 23);
  REQUIRE(evidence.begin);
  CHECK(evidence.begin->fence == 42);
  CHECK(evidence.begin->key == "k");
  CHECK(evidence.begin->lease == Millis(0));
  CHECK(evidence.last == Instant(std::chrono::nanoseconds(2000)));
  CHECK_FALSE(evidence.end);
  add_lines("H 3000 8\nE 3500 7 3\n", evidence);
  REQUIRE(evidence.end);
  CHECK(evidence.end->code == 3);
  CHECK(evidence.last == Instant(std::chrono::nanoseconds(3500)));
  add_lines("B 1000 7 - k 2000\n", evidence);
  CHECK(evidence.begin->fence == 0);
  CHECK(evidence.begin->lease == Millis(2000));
}

TEST_CASE("judge: a waiter was in line when its log says so")
{
  const std::string log = R"({"time":"1970-01-01T00:01:00.250Z","level":"notice","event":"waiting","key":null})";
  CHECK(queued_since(log, std::chrono::seconds(10)) == Instant(Millis(50'251)));
  CHECK_FALSE(queued_since("", std::chrono::seconds(10)));
}
