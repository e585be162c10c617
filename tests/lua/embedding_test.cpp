// SPDX-License-Identifier: Apache-2.0
// What is sent to the server is what stands in lua/, byte for byte, under the server's own name.
#include "lua/scripts.h"
#include "support/paths.h"
#include "support/redis_fixture.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

using namespace rlock::test;

namespace {

const std::filesystem::path lua = std::filesystem::path(RLOCK_SOURCE_DIR) / "lua";

std::string bytes_of(const std::filesystem::path& path)
{
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> stems(const char* folder)
{
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(lua / folder)) {
    found.insert(entry.path().stem());
  }
  return found;
}

std::string whole(const std::string& kind, const std::string& verb)
{
  return bytes_of(lua / "lib/names.lua") + bytes_of(lua / "kinds" / (kind + ".lua")) + bytes_of(lua / "lib/trail.lua") +
         bytes_of(lua / "lib/records.lua") + bytes_of(lua / "lib/line.lua") + bytes_of(lua / "verbs" / (verb + ".lua"));
}

}  // namespace

TEST_CASE("embedding: a script for every kind and verb, byte for byte, and its SHA1 is the server's")
{
  const RedisServer redis;
  std::set<std::string> embedded;
  for (const rlock::Script* script : rlock::scripts::all) {
    embedded.insert(std::string(script->name));
    CHECK(script->sha1 == as_text(redis.command({"SCRIPT", "LOAD", script->source()})));
  }
  for (const std::string& single : stems("single")) {
    CAPTURE(single);
    CHECK(embedded.erase(single) == 1);
    for (const rlock::Script* script : rlock::scripts::all) {
      CHECK((script->name != single || script->source() == bytes_of(lua / "single" / (single + ".lua"))));
    }
  }
  for (const std::string& kind : stems("kinds")) {
    for (const std::string& verb : stems("verbs")) {
      const std::string name = kind + "_" + verb;
      CAPTURE(name);
      CHECK(embedded.erase(name) == 1);
      for (const rlock::Script* script : rlock::scripts::all) {
        CHECK((script->name != name || script->source() == whole(kind, verb)));
      }
    }
  }
  CHECK(embedded.empty());
}
