// SPDX-License-Identifier: Apache-2.0
// Runs the embedded scripts in an interpreter of Lua 5.1, the version that Redis has, over a key space. The functions
// of `redis` and the conversions of replies are those of Redis 7.
#pragma once

#include "store/record/key_space.h"

#include <map>
#include <string>

struct lua_State;

namespace rlock::record {

// Not thread-safe.
class ScriptInterpreter {
 public:
  explicit ScriptInterpreter(KeySpace& keys);  // which must outlive it
  ~ScriptInterpreter();
  ScriptInterpreter(const ScriptInterpreter&) = delete;
  ScriptInterpreter& operator=(const ScriptInterpreter&) = delete;

  // The reply of the script; an error reply if it fails.
  Value run(const std::string& source, const Words& keys, const Words& args);

 private:
  static int call(lua_State* lua);
  static int pcall(lua_State* lua);
  bool load(const std::string& source);

  KeySpace& m_keys;
  lua_State* m_lua;
  std::map<std::string, int> m_loaded;  // the functions of the sources
};

}  // namespace rlock::record
