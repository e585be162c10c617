// SPDX-License-Identifier: Apache-2.0
// What is sent to the server is what stands in lua/, byte for byte, under the server's own name.
#include "lua/scripts.h"
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

// A script that begins with `--+ NAME` stands on lib/NAME.lua.
std::string whole(const std::string& script)
{
  const std::string mark = "--+ ";
  if (!script.starts_with(mark)) {
    return script;
  }
  const std::string library = script.substr(mark.size(), script.find('\n') - mark.size());
  return bytes_of(lua / "lib" / (library + ".lua")) + script;
}

}  // namespace

TEST_CASE("embedding: every script, byte for byte, and its SHA1 is the server's")
{
  const RedisServer redis;
  std::set<std::string> embedded;
  for (const rlock::Script* script : rlock::scripts::all) {
    const std::string name(script->name);
    CAPTURE(name);
    embedded.insert(name + ".lua");

    const std::string bytes = whole(bytes_of(lua / (name + ".lua")));
    CHECK(script->source == bytes);
    CHECK(script->sha1 == as_text(redis.command({"SCRIPT", "LOAD", bytes})));
  }

  std::set<std::string> present;
  for (const auto& entry : std::filesystem::directory_iterator(lua)) {
    if (entry.path().extension() == ".lua") {
      present.insert(entry.path().filename());
    }
  }
  CHECK(embedded == present);
}
