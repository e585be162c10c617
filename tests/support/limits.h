// SPDX-License-Identifier: Apache-2.0
// Calls from a test case to a real server, in real time.
#pragma once

#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "base/stop.h"

#include <chrono>
#include <utility>

#include <doctest/doctest.h>

namespace rlock::test {

inline CallLimits within(Millis time, StopToken stop = StopToken::never())
{
  return {.deadline = BootClock().now() + time, .stop = stop};
}
inline CallLimits soon() { return within(std::chrono::seconds(10)); }

// An Error fails the test case.
template <typename T>
T must(Result<T> result)
{
  REQUIRE_MESSAGE(result, result.error().text);
  return *std::move(result);
}

}  // namespace rlock::test
