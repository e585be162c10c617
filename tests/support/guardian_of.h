// SPDX-License-Identifier: Apache-2.0
// The guardian of a runner. It is the runner's first child.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include <sys/types.h>

namespace rlock::test {

// 0: none yet.
inline pid_t find_guardian(pid_t runner)
{
  const std::string number = std::to_string(runner);
  pid_t child = 0;
  std::ifstream("/proc/" + number + "/task/" + number + "/children") >> child;
  return child;
}

// Fails the test case when there is none.
inline pid_t guardian_of(pid_t runner)
{
  const pid_t guardian = find_guardian(runner);
  REQUIRE(guardian > 0);
  return guardian;
}

}  // namespace rlock::test
