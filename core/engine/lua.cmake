# SPDX-License-Identifier: Apache-2.0
# rlock_lua: the interpreter of Lua 5.1, the version that Redis has, for the stores that cannot run the scripts. It is linked
# into the program, so that a run on Redis loads no library for it.
find_path(LUA_INCLUDE_DIR lua.h PATH_SUFFIXES lua5.1 lua51 lua-5.1)
find_library(LUA_ARCHIVE NAMES liblua5.1.a liblua-5.1.a liblua51.a liblua.a lua5.1 lua-5.1 lua51)
if(NOT LUA_INCLUDE_DIR OR NOT LUA_ARCHIVE)
  message(FATAL_ERROR "Lua 5.1 is missing: install liblua5.1-0-dev (Debian, Ubuntu), compat-lua-devel (Fedora), "
                      "lua5.1-dev (Alpine) or lua51 (Arch)")
endif()
add_library(rlock_lua INTERFACE)
target_include_directories(rlock_lua SYSTEM INTERFACE ${LUA_INCLUDE_DIR})
target_link_libraries(rlock_lua INTERFACE ${LUA_ARCHIVE} m ${CMAKE_DL_LIBS})
