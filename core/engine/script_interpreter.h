// SPDX-License-Identifier: Apache-2.0
// Runs the embedded scripts in an interpreter of Lua 5.1, the version that Redis has, over a key space. The functions
// of `redis` and the conversions of replies are those of Redis 7.
#pragma once

#include "engine/key_space.h"
#include "engine/script_host.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

struct lua_State;

namespace rlock::record {

// Not thread-safe.
class ScriptInterpreter {
 public:
  explicit ScriptInterpreter(KeySpace& keys);  // which must outlive it
  ~ScriptInterpreter();
  ScriptInterpreter(const ScriptInterpreter&) = delete;
  ScriptInterpreter& operator=(const ScriptInterpreter&) = delete;

  // The reply of the script, from its bytecode if it has some; an error reply if it fails. nullopt: the first part came to its end
  // without an answer.
  std::optional<Reply> run(const Script& script, ScriptPart part, const Words& keys, const Words& args);
  // The same for a text that is no embedded script.
  Reply run(const std::string& source, const Words& keys, const Words& args);

 private:
  static int call(lua_State* lua);
  static int pcall(lua_State* lua);
  bool push_known(const std::string& id);
  void make_known(const std::string& id);
  bool load(std::string_view chunk);
  std::optional<Reply> run_loaded(bool is_loaded, const Words& keys, const Words& args);

  KeySpace& m_keys;
  lua_State* m_lua;
  std::map<std::string, int> m_known;  // the functions of what has been loaded
};

}  // namespace rlock::record
