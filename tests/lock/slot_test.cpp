// SPDX-License-Identifier: Apache-2.0
// slot_of computes the slots that a server computes.
#include "redis/slot_map.h"
#include "support/integration.h"

using namespace rlock::test;

TEST_CASE("slot: as CLUSTER KEYSLOT has it")
{
  const RedisServer node({.tcp = true, .cluster = true});
  for (const std::string& name :
       {std::string("plain"), std::string("{}"), std::string("x{}y"), std::string("a{b"), std::string("a}b"),
        std::string("a{b}c"), std::string("{{x}}"), std::string("a{b}{c}"), std::string("}a{b}"), std::string("{}{b}"),
        std::string("\xff\x80{\xc3\xa9}z"), std::string("nul\0{b}", 7), std::string(1000, 'x')}) {
    CAPTURE(name);
    CHECK(as_int(node.command({"CLUSTER", "KEYSLOT", name})) == slot_of(name));
  }
}
