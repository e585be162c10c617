// SPDX-License-Identifier: Apache-2.0
// Runs the embedded scripts in an interpreter of Lua 5.1, the version that Redis has, over the model of Redis. The functions
// of `redis` and the conversions of replies are those of Redis 7.
#pragma once

#include "server/transport.h"
#include "sim/model_redis.h"

#include <map>
#include <string>

struct lua_State;

namespace rlock::sim {

class LuaInterpreter {
 public:
  explicit LuaInterpreter(ModelRedis& redis);  // which must outlive it
  ~LuaInterpreter();
  LuaInterpreter(const LuaInterpreter&) = delete;
  LuaInterpreter& operator=(const LuaInterpreter&) = delete;

  // The reply of the script; an error reply if it fails.
  Value run(const std::string& source, const Words& keys, const Words& args);

 private:
  static int call(lua_State* lua);
  static int pcall(lua_State* lua);
  void load(const std::string& source);

  ModelRedis& m_redis;
  lua_State* m_lua;
  std::map<std::string, int> m_loaded;  // the functions of the sources
};

}  // namespace rlock::sim
