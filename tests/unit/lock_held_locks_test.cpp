// SPDX-License-Identifier: Apache-2.0
#include "run/environment.h"

#include <doctest/doctest.h>

using namespace rlock;

TEST_CASE("held locks: a token and a key in each line, and a key may contain spaces")
{
  const auto lines = parse_held_locks("uuid:1 stock\nuuid:2/uuid:3 a b\n");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].token == "uuid:1");
  CHECK(lines[0].key == "stock");
  CHECK(lines[1].token == "uuid:2/uuid:3");
  CHECK(lines[1].key == "a b");
  CHECK(lines[1].whole == "uuid:2/uuid:3 a b");
}

TEST_CASE("held locks: a line without a token or a key has neither, and is kept as it is")
{
  CHECK(parse_held_locks("").empty());
  for (const char* const invalid : {"uuid:1", " stock"}) {
    const auto lines = parse_held_locks(invalid);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].token.empty());
    CHECK(lines[0].key.empty());
    CHECK(lines[0].whole == invalid);
  }
}
