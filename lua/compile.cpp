// SPDX-License-Identifier: Apache-2.0
// rlock_compile_scripts OUT.cpp: a tool of the build, which writes the bytecode of the frequent scripts for the stores that cannot
// run scripts (core/store/record). To compile the whole text takes seven times as long as to load the bytecode.
//
// The bytecode has no names of variables and no numbers of lines, which make half of it. The bytes are the elements of an array of
// integers, which a compiler reads fast, and the table has no pointers, so no start of rlock relocates them.
#include "lua/scripts.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
#include <lauxlib.h>
#include <lua.h>
}

namespace {

using rlock::Script;

[[noreturn]] void fail(const std::string& text)
{
  std::cerr << "rlock_compile_scripts: " << text << '\n';
  std::exit(1);
}

int append(lua_State*, const void* bytes, std::size_t size, void* out)
{
  static_cast<std::string*>(out)->append(static_cast<const char*>(bytes), size);
  return 0;
}

// Copies a chunk of Lua 5.1 (its header says the sizes of numbers) without what only messages and debuggers need.
class Stripper {
 public:
  explicit Stripper(std::string_view chunk) : m_rest(chunk) {}

  std::string strip()
  {
    constexpr std::size_t header = 12;
    copy(header);
    function();
    if (!m_rest.empty()) {
      fail("the bytecode has another layout than that of Lua 5.1");
    }
    return std::move(m_out);
  }

 private:
  void skip(std::size_t size)
  {
    if (size > m_rest.size()) {
      fail("the bytecode has another layout than that of Lua 5.1");
    }
    m_rest.remove_prefix(size);
  }
  void copy(std::size_t size)
  {
    m_out += m_rest.substr(0, size);
    skip(size);
  }
  template <typename Number>
  Number peek()
  {
    Number number{};
    if (m_rest.size() < sizeof number) {
      fail("the bytecode ends early");
    }
    std::memcpy(&number, m_rest.data(), sizeof number);
    return number;
  }
  std::size_t string_size() { return sizeof(std::size_t) + peek<std::size_t>(); }
  std::size_t count() { return static_cast<std::size_t>(peek<int>()); }
  void put_zero(std::size_t size) { m_out.append(size, '\0'); }

  void constant()
  {
    const int type = m_rest.empty() ? LUA_TNONE : m_rest.front();
    copy(1);
    switch (type) {
      case LUA_TNIL: break;
      case LUA_TBOOLEAN: copy(1); break;
      case LUA_TNUMBER: copy(sizeof(lua_Number)); break;
      case LUA_TSTRING: copy(string_size()); break;
      default: fail("the bytecode has a constant of an unknown type");
    }
  }

  void function()
  {
    constexpr std::size_t instruction = 4;
    constexpr std::size_t traits =
        4;  // numbers of upvalues and parameters, whether there are more arguments, size of the stack
    skip(string_size());
    put_zero(sizeof(std::size_t));  // the name of the chunk
    copy(2 * sizeof(int) + traits);
    copy(sizeof(int) + count() * instruction);
    const std::size_t constants = count();
    copy(sizeof(int));
    for (std::size_t i = 0; i < constants; ++i) {
      constant();
    }
    const std::size_t functions = count();
    copy(sizeof(int));
    for (std::size_t i = 0; i < functions; ++i) {
      function();
    }
    skip_debug_information();
    put_zero(3 * sizeof(int));
  }

  void skip_debug_information()
  {
    skip(sizeof(int) + count() * sizeof(int));  // lines
    std::size_t variables = count();
    for (skip(sizeof(int)); variables > 0; --variables) {
      skip(string_size());
      skip(2 * sizeof(int));
    }
    std::size_t upvalues = count();
    for (skip(sizeof(int)); upvalues > 0; --upvalues) {
      skip(string_size());
    }
  }

  std::string_view m_rest;
  std::string m_out;
};

std::string compiled(lua_State* lua, const Script& script, rlock::ScriptPart part)
{
  const std::string source = script.source(part);
  if (luaL_loadbuffer(lua, source.data(), source.size(), script.name.data()) != 0) {
    fail(lua_tostring(lua, -1));
  }
  std::string chunk;
  lua_dump(lua, append, &chunk);
  lua_settop(lua, 0);
  return Stripper(chunk).strip();
}

// Not all, because the bytecode of all scripts would be an eighth of the program. An uncontended run of any kind waits for the first
// part of an acquire and of a release.
bool has_first_part(std::string_view script) { return script.ends_with("_acquire") || script.ends_with("_release"); }
// The plain lock is the usual one. Every verb that asks about a lock begins with its inspect script.
bool has_whole(std::string_view script)
{
  return script.starts_with("plain_") && (has_first_part(script) || script == "plain_inspect");
}

struct Row {
  std::string_view name;
  std::size_t begin;
  std::size_t first_size;
  std::size_t whole_size;
};

void write_words(std::ofstream& out, std::string bytes)
{
  bytes.resize((bytes.size() + 7) / 8 * 8);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    out << (at % 64 == 0 ? "\n    " : " ") << word << "U,";
  }
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc != 2) {
    fail("usage: rlock_compile_scripts OUT.cpp");
  }
  lua_State* const lua = luaL_newstate();
  std::string bytes;
  std::vector<Row> rows;
  for (const Script* script : rlock::scripts::all) {
    if (has_first_part(script->name) || has_whole(script->name)) {
      const std::string first =
          has_first_part(script->name) ? compiled(lua, *script, rlock::ScriptPart::first) : std::string();
      const std::string whole =
          has_whole(script->name) ? compiled(lua, *script, rlock::ScriptPart::whole) : std::string();
      rows.push_back({script->name, bytes.size(), first.size(), whole.size()});
      bytes += first + whole;
    }
  }
  lua_close(lua);

  std::ofstream out(argv[1]);
  out << "// Generated by lua/compile.cpp.\n#include \"lua/bytecode.h\"\n\n#include <cstdint>\n\nnamespace "
         "rlock::scripts {\nnamespace "
         "{\n\nconstexpr std::uint64_t words[] = {";
  write_words(out, bytes);
  out << "\n};\n\nstruct Row {\n  char name[24];\n  std::uint32_t begin;\n  std::uint32_t first_size;\n  std::uint32_t "
         "whole_size;\n"
         "};\nconstexpr Row rows[] = {\n";
  for (const Row& row : rows) {
    out << "    {\"" << row.name << "\", " << row.begin << ", " << row.first_size << ", " << row.whole_size << "},\n";
  }
  out << R"(};

}  // namespace

std::string_view bytecode_of(const Script& script, ScriptPart part)
{
  for (const Row& row : rows) {
    if (script.name == row.name) {
      const std::string_view both(reinterpret_cast<const char*>(words) + row.begin, row.first_size + row.whole_size);
      return part == ScriptPart::first ? both.substr(0, row.first_size) : both.substr(row.first_size);
    }
  }
  return {};
}

}  // namespace rlock::scripts
)";
  out.close();
  return out.good() ? 0 : 1;
}
