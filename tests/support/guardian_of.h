// SPDX-License-Identifier: Apache-2.0
// Finds the guardian of a runner: the runner's first child.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include <sys/types.h>

namespace rlock::test {

// The guardian; 0: there is none yet.
inline pid_t find_guardian(pid_t runner)
{
  const std::string number = std::to_string(runner);
  pid_t child = 0;
  std::ifstream("/proc/" + number + "/task/" + number + "/children") >> child;
  return child;
}

// The guardian. Fails the test case if there is none.
inline pid_t guardian_of(pid_t runner)
{
  const pid_t guardian = find_guardian(runner);
  REQUIRE(guardian > 0);
  return guardian;
}

}  // namespace rlock::test
