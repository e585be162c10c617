// SPDX-License-Identifier: Apache-2.0
#include "store/record/lua_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>

extern "C" {
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
}

// The functions of libm that Lua and this module call. The linker puts them in place of the real ones in every object of the program
// (--wrap, core/CMakeLists.txt).
// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): the linker demands these names
extern "C" {

double __wrap_floor(double number)
{
  constexpr double all_whole_from = 4503599627370496;  // 2^52
  if (!(std::abs(number) < all_whole_from)) {
    return number;
  }
  const auto toward_zero = static_cast<double>(static_cast<std::int64_t>(number));
  return std::copysign(toward_zero > number ? toward_zero - 1 : toward_zero, number);
}

// Lua's operator ^, which no script uses (tests/lua/embedding_test.cpp). Nothing else calls it.
double __wrap_pow(double, double) { std::abort(); }
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace rlock::record {
namespace {

int math_floor(lua_State* lua)
{
  lua_pushnumber(lua, std::floor(luaL_checknumber(lua, 1)));
  return 1;
}

int math_ceil(lua_State* lua)
{
  lua_pushnumber(lua, -std::floor(-luaL_checknumber(lua, 1)));
  return 1;
}

int math_abs(lua_State* lua)
{
  lua_pushnumber(lua, std::abs(luaL_checknumber(lua, 1)));
  return 1;
}

// The first of the numbers in this order.
template <typename Order>
int math_first(lua_State* lua)
{
  lua_Number first = luaL_checknumber(lua, 1);
  for (int at = 2; at <= lua_gettop(lua); ++at) {
    first = std::min(first, luaL_checknumber(lua, at), Order());
  }
  lua_pushnumber(lua, first);
  return 1;
}

}  // namespace

int open_math(lua_State* lua)
{
  const luaL_Reg functions[] = {{"abs", math_abs},
                                {"ceil", math_ceil},
                                {"floor", math_floor},
                                {"max", math_first<std::greater<>>},
                                {"min", math_first<std::less<>>},
                                {nullptr, nullptr}};
  luaL_register(lua, LUA_MATHLIBNAME, functions);
  lua_pushnumber(lua, std::numeric_limits<lua_Number>::infinity());
  lua_setfield(lua, -2, "huge");
  return 1;
}

}  // namespace rlock::record
