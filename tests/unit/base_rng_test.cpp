// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <doctest/doctest.h>

using namespace rlock;

TEST_CASE("uuid: version 4, variant 1, lower case, never twice")
{
  SystemRng rng;
  const std::string one = random_uuid(rng);
  REQUIRE(one.size() == 36);
  CHECK(one[8] == '-');
  CHECK(one[13] == '-');
  CHECK(one[14] == '4');
  CHECK(std::string("89ab").find(one[19]) != std::string::npos);
  CHECK(one.find_first_not_of("0123456789abcdef-") == std::string::npos);
  CHECK(random_uuid(rng) != one);
}
