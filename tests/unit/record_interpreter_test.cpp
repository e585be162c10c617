// SPDX-License-Identifier: Apache-2.0
// The library math that the interpreter gives to scripts (lua_math.cpp). That the scripts do the same as on a Redis server is
// the subject of the differential test of tests/sim.
#include "store/record/script_interpreter.h"

#include <doctest/doctest.h>

using namespace rlock::record;

namespace {

std::string answer(const std::string& expression)
{
  KeySpace keys;
  ScriptInterpreter lua(keys);
  const Value value = lua.run("return tostring(" + expression + ")", {}, {});
  return value.text;
}

}  // namespace

TEST_CASE("interpreter: floor and ceil of numbers of both signs, of whole ones and of those that have no fraction")
{
  CHECK(answer("math.floor(1.5)") == "1");
  CHECK(answer("math.floor(-1.5)") == "-2");
  CHECK(answer("math.floor(-0.25)") == "-1");
  CHECK(answer("math.floor(0.75)") == "0");
  CHECK(answer("math.floor(-2)") == "-2");
  CHECK(answer("string.format('%.1f', math.floor(4503599627370495.5))") == "4503599627370495.0");
  CHECK(answer("string.format('%.1f', math.floor(1794000000000000.75))") == "1794000000000000.0");
  CHECK(answer("math.floor(1e300) == 1e300") == "true");
  CHECK(answer("math.floor(-math.huge) == -math.huge") == "true");
  CHECK(answer("math.floor(0/0) == math.floor(0/0)") == "false");  // no number
  CHECK(answer("math.ceil(1.5)") == "2");
  CHECK(answer("math.ceil(-1.5)") == "-1");
  CHECK(answer("math.ceil(3)") == "3");
  CHECK(answer("1 / math.floor(tonumber('-0')) < 0") == "true");
  CHECK(answer("1 / math.ceil(-0.5) < 0") == "true");
}

TEST_CASE("interpreter: the remainder has the sign of the divisor")
{
  CHECK(answer("-7 % 3") == "2");
  CHECK(answer("7 % -3") == "-2");
  CHECK(answer("tonumber('-7.5') % 2") == "0.5");
}

TEST_CASE("interpreter: abs, and the least and the greatest of several numbers")
{
  CHECK(answer("math.abs(-2.5)") == "2.5");
  CHECK(answer("math.max(3, 9, 4)") == "9");
  CHECK(answer("math.max('10', 9)") == "10");
  CHECK(answer("math.min(3, 1, 4)") == "1");
  CHECK(answer("math.max(5)") == "5");
  CHECK(answer("math.max(0/0, 1) ~= math.max(0/0, 1)") == "true");  // no number, as in Lua
}
