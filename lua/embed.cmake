# SPDX-License-Identifier: Apache-2.0
# cmake -DLUA=directory -DDEFAULTS=defaults.h -DCONSTANTS=name;name -DSCHEMA=schema.h -DKINDS=a.lua;b.lua
# -DVERBS=c.lua;d.lua -DSINGLES=e.lua -DOUT=scripts.cpp -P embed.cmake
#
# Puts the words of the schema into the scripts: a local for each word would cost time in each call, a text does not.
# Cuts the files of lib and kinds into blocks, one for each local at the left margin, and puts together of each script what
# it needs: a server creates every function of a script anew in each call. A verb begins with its most frequent cases, which
# return; what only the rest needs comes after the line "-- Otherwise.", so that they do not pay for it.
#
# Lines that are empty or only a comment are left out. The bytes are written as \x escapes throughout, because then no byte
# needs a rule.
cmake_policy(VERSION 3.25)

# What the functions share: the number of blocks; of each text its index; of each block its text, its words and the names
# that it defines.
function(put name value)
  set_property(GLOBAL PROPERTY "lua_${name}" "${value}")
endfunction()

function(get variable name)
  get_property(value GLOBAL PROPERTY "lua_${name}")
  set(${variable} "${value}" PARENT_SCOPE)
endfunction()

put(count 0)

# A list of CMake cannot hold these characters of Lua: in a list, control characters stand for them.
string(ASCII 1 semicolon)
string(ASCII 2 left_bracket)
string(ASCII 3 right_bracket)
string(ASCII 4 block_begin)

function(as_list_element text variable)
  string(REPLACE ";" "${semicolon}" text "${text}")
  string(REPLACE "[" "${left_bracket}" text "${text}")
  string(REPLACE "]" "${right_bracket}" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

function(from_list_element text variable)
  string(REPLACE "${semicolon}" ";" text "${text}")
  string(REPLACE "${left_bracket}" "[" text "${text}")
  string(REPLACE "${right_bracket}" "]" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# The code of a file, or of a part of it.
function(without_comments text variable)
  string(REGEX REPLACE "\n *--[^\n]*" "" text "\n${text}")
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  string(REGEX REPLACE "^\n" "" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# {HolderField::lease, "lease"} in the schema is @field.lease@ in a script. A field stands for its beginning in a record, which is
# not known of the second field, because the first one may be missing.
file(READ ${SCHEMA} schema)
string(REGEX MATCHALL "[A-Z][a-z]+::[a-z_]+, \"[a-z_]+\"}" rows "${schema}")
set(schema_names "")
set(fields 0)
foreach(row IN LISTS rows)
  string(REGEX MATCH "([A-Za-z]+)::([a-z_]+), \"([a-z_]+)\"" row "${row}")
  string(TOLOWER ${CMAKE_MATCH_1} table)
  set(text ${CMAKE_MATCH_3})
  if(table STREQUAL field)
    math(EXPR fields "${fields} + 1")
    if(fields EQUAL 2)
      continue()
    elseif(fields EQUAL 1)
      set(text "^${text}=")
    else()
      set(text "\\n${text}=")
    endif()
  endif()
  list(APPEND schema_names ${table}.${CMAKE_MATCH_2})
  set(schema_${table}.${CMAKE_MATCH_2} "${text}")
endforeach()

# The text of a file, with the words of the schema.
function(read_script path variable)
  file(READ ${path} text)
  foreach(name IN LISTS schema_names)
    string(REPLACE "@${name}@" "${schema_${name}}" text "${text}")
  endforeach()
  if(text MATCHES "@[a-z]+\\.[a-z_]+@")
    message(FATAL_ERROR "${path}: the schema has no ${CMAKE_MATCH_0}")
  endif()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

function(identifiers text variable)
  string(REGEX MATCHALL "[A-Za-z_][A-Za-z0-9_]*" words "${text}")
  list(REMOVE_DUPLICATES words)
  set(${variable} "${words}" PARENT_SCOPE)
endfunction()

# The index of a text in the table of blocks.
function(add_block text variable)
  string(SHA1 id "${text}")
  get(index index_${id})
  if(index STREQUAL "")
    get(index count)
    math(EXPR next "${index} + 1")
    put(count ${next})
    put(index_${id} ${index})
    put(text_${index} "${text}")
    identifiers("${text}" words)
    put(words_${index} "${words}")
    string(REGEX MATCH "^local (function )?([A-Za-z0-9_, ]+)" head "${text}")
    string(REGEX MATCHALL "[A-Za-z_][A-Za-z0-9_]*" names "${CMAKE_MATCH_2}")
    put(names_${index} "${names}")
  endif()
  set(${variable} ${index} PARENT_SCOPE)
endfunction()

# The indices of the blocks of a file.
function(add_file path variable)
  read_script(${path} text)
  without_comments("${text}" text)
  as_list_element("\n${text}" text)
  string(REPLACE "\nlocal " "${block_begin}local " text "${text}")
  string(REPLACE "${block_begin}" ";" parts "${text}")
  set(indices "")
  foreach(part IN LISTS parts)
    string(STRIP "${part}" part)
    if(part)
      from_list_element("${part}" part)
      add_block("${part}\n" index)
      list(APPEND indices ${index})
    endif()
  endforeach()
  set(${variable} "${indices}" PARENT_SCOPE)
endfunction()

# Which of `blocks` a text needs, and what those need, in the order of `blocks`.
function(needed_by text blocks variable)
  foreach(index IN LISTS blocks)
    get(names names_${index})
    foreach(name IN LISTS names)
      set(definition_${name} ${index})
    endforeach()
  endforeach()
  identifiers("${text}" words)
  set(needed "")
  while(words)
    list(POP_FRONT words word)
    set(index "${definition_${word}}")
    if(NOT index STREQUAL "" AND NOT index IN_LIST needed)
      list(APPEND needed ${index})
      get(more words_${index})
      list(APPEND words ${more})
    endif()
  endwhile()
  set(ordered ${blocks})
  foreach(index IN LISTS blocks)
    if(NOT index IN_LIST needed)
      list(REMOVE_ITEM ordered ${index})
    endif()
  endforeach()
  set(${variable} "${ordered}" PARENT_SCOPE)
endfunction()

# The blocks of a verb, and how many of them are its first part. `library`: those of its kind and of lib.
function(add_verb path library variable first_part)
  read_script(${path} rest)
  set(order "")
  set(first_length "")
  while(NOT rest STREQUAL "")
    string(FIND "${rest}" "\n-- Otherwise.\n" cut)
    string(SUBSTRING "${rest}" 0 ${cut} text)
    if(cut EQUAL -1)
      set(rest "")
    else()
      math(EXPR cut "${cut} + 1")
      string(SUBSTRING "${rest}" ${cut} -1 rest)
    endif()
    without_comments("${text}\n" text)
    needed_by("${text}" "${library}" blocks)
    list(REMOVE_ITEM blocks ${order})
    add_block("${text}" index)
    list(APPEND order ${blocks} ${index})
    if(first_length STREQUAL "")
      list(LENGTH order first_length)
    endif()
  endwhile()
  set(${variable} ${order} PARENT_SCOPE)
  set(${first_part} ${first_length} PARENT_SCOPE)
endfunction()

# The definition of a script that consists of these blocks. `first_part`: how many of them are its first part.
function(define name blocks first_part)
  set(whole "")
  set(order "")
  foreach(index IN LISTS blocks)
    get(text text_${index})
    string(APPEND whole "${text}")
    math(EXPR hex "${index} + 256" OUTPUT_FORMAT HEXADECIMAL)
    string(SUBSTRING "${hex}" 3 2 digits)
    string(APPEND order "\\x${digits}")
  endforeach()
  string(SHA1 sha1 "${whole}")
  get(definitions definitions)
  put(definitions "${definitions}const Script ${name}{\"${name}\"sv, blocks, \"${order}\"sv, \"${sha1}\"sv, ${first_part}};\n")
endfunction()

# local NAME = digits for each constant of the header that a script names.
file(STRINGS ${DEFAULTS} default_lines REGEX "^inline constexpr")
set(constants "")
foreach(constant IN LISTS CONSTANTS)
  if(NOT "${default_lines}" MATCHES " ${constant}{([0-9]+)}")
    message(FATAL_ERROR "${DEFAULTS} does not define ${constant}")
  endif()
  string(TOUPPER ${constant} name)
  add_block("local ${name} = ${CMAKE_MATCH_1}\n" index)
  list(APPEND constants ${index})
endforeach()
foreach(library names event_log records waiters queue)
  add_file(${LUA}/lib/${library}.lua ${library})
endforeach()
foreach(kind IN LISTS KINDS)
  cmake_path(GET kind STEM kind_name)
  add_file(${kind} of_kind)
  foreach(verb IN LISTS VERBS)
    cmake_path(GET verb STEM verb_name)
    add_verb(${verb} "${constants};${names};${of_kind};${event_log};${records};${waiters};${queue}" blocks
             first_part)
    define(${kind_name}_${verb_name} "${blocks}" ${first_part})
  endforeach()
endforeach()
foreach(single IN LISTS SINGLES)
  cmake_path(GET single STEM name)
  file(READ ${single} text)
  without_comments("${text}" text)
  add_block("${text}" index)
  define(${name} ${index} 1)
endforeach()

get(count count)
if(count GREATER 256)
  message(FATAL_ERROR "a script names its blocks by bytes, and there are ${count}")
endif()
set(table "")
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
  get(text text_${index})
  string(HEX "${text}" bytes)
  string(REGEX REPLACE "(..)" "\\\\x\\1" literal "${bytes}")
  string(REPLACE "\\x0a" "\\x0a\"\n    \"" literal "${literal}")  # line for line
  string(APPEND table "    \"${literal}\"sv,\n")
endforeach()
get(definitions definitions)
file(WRITE ${OUT} "// Generated by lua/embed.cmake.
#include \"lua/scripts.h\"

namespace rlock::scripts {

using namespace std::string_view_literals;

namespace {

constexpr std::string_view blocks[] = {
${table}};

}  // namespace

${definitions}
}  // namespace rlock::scripts
")
