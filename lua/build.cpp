// SPDX-License-Identifier: Apache-2.0
// rlock_build_scripts SCRIPT.lua ARGUMENT…: runs a script of the build in the interpreter that rlock is linked with. The script has the
// table `arg`, and the function sha1(TEXT), which Lua 5.1 cannot do in reasonable time.
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

extern "C" {
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
}

namespace {

using Digest = std::array<std::uint32_t, 5>;

// FIPS 180-4, 6.1.2: one block of 64 bytes.
void add_block(Digest& digest, const unsigned char* block)
{
  std::array<std::uint32_t, 80> words{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t byte = 0; byte < 4; ++byte) {
      words[i] = words[i] << 8U | block[4 * i + byte];
    }
  }
  for (std::size_t i = 16; i < words.size(); ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = digest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    constexpr std::array<std::uint32_t, 4> constants{0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    const std::array<std::uint32_t, 4> mixed{(b & c) | (~b & d), b ^ c ^ d, (b & c) | (b & d) | (c & d), b ^ c ^ d};
    const std::uint32_t next = std::rotl(a, 5) + mixed[i / 20] + e + constants[i / 20] + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  digest = {digest[0] + a, digest[1] + b, digest[2] + c, digest[3] + d, digest[4] + e};
}

int sha1(lua_State* lua)
{
  std::size_t size = 0;
  const char* const text = luaL_checklstring(lua, 1, &size);
  std::string message(text, size);
  message += '\x80';
  message.append((120 - message.size() % 64) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) {
    message += static_cast<char>(std::uint64_t{size} * 8 >> static_cast<unsigned>(shift));
  }
  Digest digest{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  for (std::size_t at = 0; at < message.size(); at += 64) {
    add_block(digest, reinterpret_cast<const unsigned char*>(message.data()) + at);
  }
  std::array<char, 41> hex{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    std::snprintf(hex.data() + 8 * i, 9, "%08x", digest[i]);
  }
  lua_pushstring(lua, hex.data());
  return 1;
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc < 2) {
    std::cerr << "usage: rlock_build_scripts SCRIPT.lua ARGUMENT...\n";
    return 2;
  }
  lua_State* const lua = luaL_newstate();
  luaL_openlibs(lua);
  lua_register(lua, "sha1", sha1);
  lua_newtable(lua);
  for (int i = 2; i < argc; ++i) {
    lua_pushstring(lua, argv[i]);
    lua_rawseti(lua, -2, i - 1);
  }
  lua_setglobal(lua, "arg");
  if (luaL_dofile(lua, argv[1])) {
    std::cerr << lua_tostring(lua, -1) << '\n';
    return 1;
  }
  lua_close(lua);
  return 0;
}
