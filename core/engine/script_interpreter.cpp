// SPDX-License-Identifier: Apache-2.0
#include "engine/script_interpreter.h"

#include "engine/commands.h"
#include "lua/bytecode.h"

extern "C" {
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
}

namespace rlock::record {
namespace {

// An error of a script is a table with the field err, as since Redis 7.
void push_field(lua_State* lua, const char* field, const std::string& text)
{
  lua_newtable(lua);
  lua_pushlstring(lua, text.data(), text.size());
  lua_setfield(lua, -2, field);
}

void push(lua_State* lua, const Reply& reply)
{
  switch (reply.kind) {
    case Reply::Kind::nil: lua_pushboolean(lua, 0); return;
    case Reply::Kind::integer: lua_pushnumber(lua, static_cast<lua_Number>(reply.integer)); return;
    case Reply::Kind::text:
      if (reply.is_status) {
        return push_field(lua, "ok", reply.text);
      }
      lua_pushlstring(lua, reply.text.data(), reply.text.size());
      return;
    case Reply::Kind::error: push_field(lua, "err", reply.text); return;
    case Reply::Kind::array: break;
  }
  lua_createtable(lua, static_cast<int>(reply.elements.size()), 0);
  for (std::size_t at = 0; at < reply.elements.size(); ++at) {
    push(lua, reply.elements[at]);
    lua_rawseti(lua, -2, static_cast<int>(at) + 1);
  }
}

std::string text_at(lua_State* lua, int at)
{
  std::size_t size = 0;
  const char* const text = lua_tolstring(lua, at, &size);
  return text == nullptr ? "" : std::string(text, size);
}

Reply reply_at(lua_State* lua, int at);

Reply table_at(lua_State* lua, int at)
{
  for (const char* const field : {"err", "ok"}) {
    lua_getfield(lua, at, field);
    const bool is_there = lua_type(lua, -1) == LUA_TSTRING;
    const std::string text = text_at(lua, -1);
    lua_pop(lua, 1);
    if (is_there) {
      return field[0] == 'e' ? Reply::error(text) : Reply::status(text);
    }
  }
  Reply list = Reply::array();
  for (int index = 1;; ++index) {
    lua_rawgeti(lua, at, index);
    const bool is_end = lua_isnil(lua, -1);
    if (!is_end) {
      list.elements.push_back(reply_at(lua, lua_gettop(lua)));
    }
    lua_pop(lua, 1);
    if (is_end) {
      return list;
    }
  }
}

Reply reply_at(lua_State* lua, int at)
{
  switch (lua_type(lua, at)) {
    case LUA_TNUMBER: return Reply::of(static_cast<std::int64_t>(lua_tonumber(lua, at)));
    case LUA_TSTRING: return Reply::of(text_at(lua, at));
    case LUA_TBOOLEAN: return lua_toboolean(lua, at) != 0 ? Reply::of(1) : Reply{};
    case LUA_TTABLE: return table_at(lua, at);
    default: return {};
  }
}

// A number as Redis passes it to a command.
Words words_of_call(lua_State* lua)
{
  Words words;
  for (int at = 1; at <= lua_gettop(lua); ++at) {
    const bool is_number = lua_type(lua, at) == LUA_TNUMBER;
    if (!is_number && lua_type(lua, at) != LUA_TSTRING) {
      throw CommandError{"ERR Lua redis lib command arguments must be strings or integers"};
    }
    words.push_back(is_number ? number_text(lua_tonumber(lua, at)) : text_at(lua, at));
  }
  return words;
}

Reply called(lua_State* lua)
{
  auto* const redis = static_cast<KeySpace*>(lua_touserdata(lua, lua_upvalueindex(1)));
  try {
    return redis->command(words_of_call(lua));
  } catch (const CommandError& refused) {
    return Reply::error(refused.text);
  }
}

// The store itself refuses what its user may not do.
int acl_check_cmd(lua_State* lua)
{
  lua_pushboolean(lua, 1);
  return 1;
}

// Redis refuses globals that do not exist.
constexpr const char* no_globals =
    "setmetatable(_G, {__index = function(_, name) error('Script attempted to access nonexistent global variable ' .. "
    "tostring(name), 2) end})";

}  // namespace

int ScriptInterpreter::pcall(lua_State* lua)
{
  push(lua, called(lua));
  return 1;
}

int ScriptInterpreter::call(lua_State* lua)
{
  bool failed = false;
  {
    const Reply reply = called(lua);
    failed = reply.is_error();
    push(lua, reply);
  }  // lua_error leaves no scope
  return failed ? lua_error(lua) : 1;
}

ScriptInterpreter::ScriptInterpreter(KeySpace& keys) : m_keys(keys), m_lua(luaL_newstate())
{
  constexpr std::pair<const char*, lua_CFunction> libraries[] = {{"", luaopen_base},
                                                                 {LUA_TABLIBNAME, luaopen_table},
                                                                 {LUA_STRLIBNAME, luaopen_string},
                                                                 {LUA_MATHLIBNAME, luaopen_math}};
  for (const auto& [name, open] : libraries) {
    lua_pushcfunction(m_lua, open);
    lua_pushstring(m_lua, name);
    lua_call(m_lua, 1, 0);
  }
  constexpr int seldom = 400;  // collect garbage when the memory is so many percent of what was left last time
  lua_gc(m_lua, LUA_GCSETPAUSE, seldom);
  lua_newtable(m_lua);
  const std::pair<const char*, lua_CFunction> functions[] = {
      {"call", call}, {"pcall", pcall}, {"acl_check_cmd", acl_check_cmd}};
  for (const auto& [name, function] : functions) {
    lua_pushlightuserdata(m_lua, &m_keys);
    lua_pushcclosure(m_lua, function, 1);
    lua_setfield(m_lua, -2, name);
  }
  lua_setglobal(m_lua, "redis");
  luaL_dostring(m_lua, no_globals);
}

ScriptInterpreter::~ScriptInterpreter() { lua_close(m_lua); }

// Pushes a function that was loaded before; false: it was not.
bool ScriptInterpreter::push_known(const std::string& id)
{
  const auto found = m_known.find(id);
  if (found == m_known.end()) {
    return false;
  }
  lua_rawgeti(m_lua, LUA_REGISTRYINDEX, found->second);
  return true;
}

void ScriptInterpreter::make_known(const std::string& id)
{
  lua_pushvalue(m_lua, -1);
  m_known[id] = luaL_ref(m_lua, LUA_REGISTRYINDEX);
}

// Pushes the function of a source or of bytecode, or an error message (false).
bool ScriptInterpreter::load(std::string_view chunk)
{
  return luaL_loadbuffer(m_lua, chunk.data(), chunk.size(), "@user_script") == 0;
}

// Runs the function on the stack. An error message there becomes the reply.
std::optional<Reply> ScriptInterpreter::run_loaded(bool is_loaded, const Words& keys, const Words& args)
{
  push(m_lua, Reply::list(keys));
  lua_setglobal(m_lua, "KEYS");
  push(m_lua, Reply::list(args));
  lua_setglobal(m_lua, "ARGV");
  const bool failed = !is_loaded || lua_pcall(m_lua, 0, LUA_MULTRET, 0) != 0;
  if (lua_gettop(m_lua) == 0) {
    return std::nullopt;
  }
  Reply reply = reply_at(m_lua, 1);
  if (failed && reply.kind == Reply::Kind::text) {
    reply = Reply::error("ERR " + reply.text);
  }
  lua_settop(m_lua, 0);
  return reply;
}

std::optional<Reply> ScriptInterpreter::run(const Script& script, ScriptPart part, const Words& keys, const Words& args)
{
  const std::string id = std::string(script.name) + (part == ScriptPart::first ? "/first" : "");
  bool is_loaded = push_known(id);
  if (!is_loaded) {
    const std::string_view bytecode = scripts::bytecode_of(script, part);
    is_loaded = !bytecode.empty() && load(bytecode);
    if (!is_loaded) {  // a rare script, or a Lua whose bytecode has another layout
      lua_settop(m_lua, 0);
      is_loaded = load(script.source(part));
    }
    if (is_loaded) {
      make_known(id);
    }
  }
  return run_loaded(is_loaded, keys, args);
}

Reply ScriptInterpreter::run(const std::string& source, const Words& keys, const Words& args)
{
  bool is_loaded = push_known(source);
  if (!is_loaded && load(source)) {
    is_loaded = true;
    make_known(source);
  }
  return run_loaded(is_loaded, keys, args).value_or(Reply{});
}

}  // namespace rlock::record
