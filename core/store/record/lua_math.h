// SPDX-License-Identifier: Apache-2.0
// Arithmetic for the scripts without libm.so: to load that library takes 0.05 to 0.07 of the time of `flock FILE true`, at each
// start of rlock.
#pragma once

struct lua_State;

namespace rlock::record {

// Of Lua's library math what the scripts use, in place of luaopen_math.
int open_math(lua_State* lua);

}  // namespace rlock::record
