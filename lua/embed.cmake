# SPDX-License-Identifier: Apache-2.0
# cmake -DLUA=directory -DDEFAULTS=defaults.h -DCONSTANTS=name;name -DSCHEMA=schema.h -DKINDS=a.lua;b.lua
# -DVERBS=c.lua;d.lua -DSINGLES=e.lua -DOUT=scripts.cpp -P embed.cmake
#
# Makes the text of one script for each kind of lock and each verb: of lib/*.lua, kinds/KIND.lua and verbs/VERB.lua what it needs.
# tests/lua/embedding_test.cpp checks that nothing else is in it; ../build/dev/lua/generated/scripts.cpp has the texts.
#
# A server compiles a script once, but creates every function of it anew in each call, and that costs as much as the commands of a
# short script. So:
#
# * The files of lib and kinds are cut into blocks, one for each local at the left margin. A script has the blocks that its verb
#   needs, and those that they need.
# * A verb begins with its most frequent cases, which return. Its next part comes after the line "-- Otherwise."; the blocks that
#   only the next part needs stand there, so that the frequent cases do not pay for them.
# * A call of a function with "-- inline" behind it is replaced by the body of the function (`expand`). So a frequent case creates no
#   function, and what it does is still written once. The mark changes nothing but the time. From
#
#     local function now_us()
#       server_time = server_time or redis.call('TIME')
#       return server_time[1] * 1000000 + server_time[2]
#     end
#     local now = now_us()  -- inline
#
#   comes
#
#     local r_now_us
#     do
#       server_time = server_time or redis.call('TIME')
#       r_now_us = server_time[1] * 1000000 + server_time[2]
#     end
#     local now = r_now_us
#
# * What a kind never does is left out: it decides "if MULTI_HOLDER then" and "if NEEDS_NO_KEY then" (`without_dead_branches`).
# * Words of the schema and constants of the header are put into the text, because a local for each would cost time in each call.
#
# Empty lines and comments are left out. The bytes are written as \x escapes throughout, because then no byte needs a rule.
cmake_policy(VERSION 3.25)

# What the functions share: the number of blocks, and how many of them the scripts use; of each text its index; of each block its
# text, its words, the names that it defines, and its place in the table of the scripts; of each line its number.
function(put name value)
  set_property(GLOBAL PROPERTY "lua_${name}" "${value}")
endfunction()

function(get variable name)
  get_property(value GLOBAL PROPERTY "lua_${name}")
  set(${variable} "${value}" PARENT_SCOPE)
endfunction()

put(count 0)
put(used 0)
put(line_count 0)

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
  string(REPLACE "  -- inline\n" "${block_begin}" text "${text}\n")
  string(REGEX REPLACE "  +-- [^\n${block_begin}]*\n" "\n" text "${text}")
  string(REPLACE "${block_begin}" "  -- inline\n" text "${text}")
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

# The digits of NAME in the header are @default.NAME@ in a script: a text, because the server takes long to make one of a number.
file(STRINGS ${DEFAULTS} default_lines REGEX "^inline constexpr")
foreach(constant IN LISTS CONSTANTS)
  if(NOT "${default_lines}" MATCHES " ${constant}{([0-9]+)}")
    message(FATAL_ERROR "${DEFAULTS} does not define ${constant}")
  endif()
  list(APPEND schema_names default.${constant})
  set(schema_default.${constant} ${CMAKE_MATCH_1})
endforeach()

# The text of a file, with the words of the schema and the constants.
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

# The lines of a text as a list.
function(lines_of text variable)
  as_list_element("${text}" text)
  string(REGEX REPLACE "\n+$" "" text "${text}")
  string(REPLACE "\n" ";" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# The text without the branches "if TRAIT then" and "if not TRAIT then" that this kind never takes; TRAIT is MULTI_HOLDER or
# NEEDS_NO_KEY, which are variables of the caller: true or false. Knows these lines alone, with their "else" and "end".
function(without_dead_branches text variable)
  lines_of("${text}" lines)
  set(out "")
  set(ends "")    # of each open branch, the innermost first: its indentation behind a |
  set(states "")  # of each: alive or dead
  foreach(line IN LISTS lines)
    if(ends)
      list(GET ends 0 end)
      if("|${line}" STREQUAL "${end}end")
        list(POP_FRONT ends)
        list(POP_FRONT states)
        continue()
      elseif("|${line}" STREQUAL "${end}else")
        list(POP_FRONT states state)
        set(other alive)
        if(state STREQUAL alive)
          set(other dead)
        endif()
        list(PREPEND states ${other})
        continue()
      endif()
    endif()
    if(line MATCHES "^( *)if (not )?(MULTI_HOLDER|NEEDS_NO_KEY) then$")
      set(indentation "${CMAKE_MATCH_1}")
      set(negated "${CMAKE_MATCH_2}")
      set(state dead)
      if((${CMAKE_MATCH_3} AND negated STREQUAL "") OR NOT (${CMAKE_MATCH_3} OR negated STREQUAL ""))
        set(state alive)
      endif()
      list(PREPEND ends "|${indentation}")
      list(PREPEND states ${state})
      continue()
    endif()
    if(NOT dead IN_LIST states)
      string(APPEND out "${line}\n")
    endif()
  endforeach()
  from_list_element("${out}" out)
  set(${variable} "${out}" PARENT_SCOPE)
endfunction()

# The body of a function as a statement, which gives `results` what the function returns. A body with a return before its end
# becomes a loop that ends at once, so that a break can leave it; such a return must not stand in a loop of its own.
function(statement_of definition arguments results variable)
  string(REGEX MATCH "^local function ([a-z_]+)\\(([^)]*)\\)\n(.*)\nend\n$" match "${definition}")
  set(name ${CMAKE_MATCH_1})
  set(parameters "${CMAKE_MATCH_2}")
  lines_of("${CMAKE_MATCH_3}" lines)
  list(LENGTH lines left)
  set(out "")
  set(breaks FALSE)
  set(loop "")  # the indentation of the outermost loop that is open
  foreach(line IN LISTS lines)
    math(EXPR left "${left} - 1")
    if(loop STREQUAL "" AND line MATCHES "^( +)(for|while|repeat) ")
      set(loop "${CMAKE_MATCH_1}")
    elseif(NOT loop STREQUAL "" AND line STREQUAL "${loop}end")
      set(loop "")
    endif()
    if(line MATCHES "^( +)return( (.*))?$")
      set(indentation "${CMAKE_MATCH_1}")
      set(value "${CMAKE_MATCH_3}")
      set(line "")
      if(NOT value STREQUAL "")
        set(line "${indentation}${results} = ${value}\n")
      endif()
      if(NOT indentation STREQUAL "  ")
        if(NOT loop STREQUAL "" OR value MATCHES "[{(,]$| (and|or)$")
          message(FATAL_ERROR "${name} cannot be inline: a return in a loop or of several lines")
        endif()
        set(breaks TRUE)
        string(APPEND line "${indentation}break\n")
      endif()
      string(APPEND out "${line}")
    elseif(line MATCHES "(^|[^a-z_])return($|[^a-z_])")
      message(FATAL_ERROR "${name} cannot be inline: a return that does not begin its line")
    else()
      string(APPEND out "${line}\n")
    endif()
  endforeach()
  from_list_element("${out}" out)
  if(NOT parameters STREQUAL "")
    if(arguments STREQUAL "")
      set(out "local ${parameters}\n${out}")
    elseif(NOT arguments STREQUAL parameters)
      set(out "local ${parameters} = ${arguments}\n${out}")
    endif()
  endif()
  if(breaks)
    set(out "repeat\n${out}until true\n")
  else()
    set(out "do\n${out}end\n")
  endif()
  set(${variable} "${out}" PARENT_SCOPE)
endfunction()

# Fails if a local of the text has the name of something in the library: a body that is put there would take it for that.
# `own_names`: what the text itself defines in the library.
function(check_locals text own_names library)
  string(REGEX MATCHALL "(local )?function [a-z_]*\\([A-Za-z0-9_, ]*|local [A-Za-z0-9_, ]+|for [a-z_, ]+" places "${text}")
  identifiers("${places}" locals)
  list(REMOVE_ITEM locals ${own_names})
  foreach(index IN LISTS library)
    get(defined names_${index})
    foreach(name IN LISTS defined)
      if(name IN_LIST locals)
        message(FATAL_ERROR "beside a call that is inline, the local ${name} hides what lib or kinds define:\n${text}")
      endif()
    endforeach()
  endforeach()
endfunction()

# The text of a script of this kind: without dead branches, and each line "NAME(…)  -- inline", also behind "local x = ",
# "x = " or "return ", with the body of NAME in place of the call. `own_names`: what the text defines; `library`: the blocks that
# define the functions. An argument with the name of its parameter is not copied.
function(expand text own_names library variable)
  if(NOT text MATCHES "-- inline\n|if (not )?(MULTI_HOLDER|NEEDS_NO_KEY) then\n")
    set(${variable} "${text}" PARENT_SCOPE)
    return()
  endif()
  check_locals("${text}" "${own_names}" "${library}")
  without_dead_branches("${text}" text)
  lines_of("${text}" lines)
  set(out "")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "-- inline$")
      string(APPEND out "${line}\n")
      continue()
    elseif(NOT line MATCHES "^( *(local )?([a-z_, ]+) = | *return | *)([a-z_]+)\\((.*)\\)  -- inline$")
      message(FATAL_ERROR "cannot be inline: ${line}")
    endif()
    set(use "${CMAKE_MATCH_1}")
    set(names "${CMAKE_MATCH_3}")
    set(name ${CMAKE_MATCH_4})
    from_list_element("${CMAKE_MATCH_5}" arguments)
    set(definition "")
    foreach(index IN LISTS library)
      get(defined names_${index})
      if(defined STREQUAL name)
        get(definition text_${index})
      endif()
    endforeach()
    if(NOT definition MATCHES "^local function ")
      message(FATAL_ERROR "no function to be inline: ${line}")
    endif()
    expand("${definition}" ${name} "${library}" definition)
    string(REGEX MATCHALL "," more "${names}")
    set(results "r_${name}")
    foreach(comma IN LISTS more)
      string(APPEND results ", r_${name}_more")
    endforeach()
    statement_of("${definition}" "${arguments}" "${results}" body)
    if(NOT use MATCHES "^ *$" OR body MATCHES "r_${name} = ")
      set(body "local ${results}\n${body}")
    endif()
    if(NOT use MATCHES "^ *$")
      string(APPEND body "${use}${results}\n")
    endif()
    as_list_element("${body}" body)
    string(APPEND out "${body}")
  endforeach()
  from_list_element("${out}" out)
  set(${variable} "${out}" PARENT_SCOPE)
endfunction()

# The same for the blocks of a kind: the indices of their texts.
function(expand_blocks blocks variable)
  set(expanded "")
  foreach(index IN LISTS blocks)
    get(text text_${index})
    get(own_names names_${index})
    expand("${text}" "${own_names}" "${blocks}" text)
    add_block("${text}" index)
    list(APPEND expanded ${index})
  endforeach()
  set(${variable} "${expanded}" PARENT_SCOPE)
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

# The numbers of the lines of a text, two bytes each, as a C++ literal. The scripts of the kinds share most lines.
function(line_numbers text variable)
  lines_of("${text}" lines)
  set(numbers "")
  foreach(line IN LISTS lines)
    string(SHA1 id "${line}")
    get(number line_${id})
    if(number STREQUAL "")
      get(number line_count)
      math(EXPR next "${number} + 1")
      put(line_count ${next})
      put(line_${id} ${number})
      from_list_element("${line}" line)
      string(HEX "${line}" bytes)
      string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
      get(line_table line_table)
      put(line_table "${line_table}    \"${bytes}\",\n")
    endif()
    math(EXPR hex "${number} + 65536" OUTPUT_FORMAT HEXADECIMAL)
    string(SUBSTRING "${hex}" 3 4 digits)
    string(REGEX REPLACE "(..)" "\\\\x\\1" digits "${digits}")
    string(APPEND numbers "${digits}")
  endforeach()
  set(${variable} "${numbers}" PARENT_SCOPE)
endfunction()

# The blocks of a verb, and how many of them are its first part. `library`: those of its kind and of lib, expanded.
function(add_verb path plain_library library variable first_part)
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
    expand("${text}" "" "${plain_library}" text)
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
    get(place place_${index})
    if(place STREQUAL "")
      get(place used)
      math(EXPR used "${place} + 1")
      put(used ${used})
      put(place_${index} ${place})
      line_numbers("${text}" literal)
      get(table table)
      put(table "${table}    \"${literal}\"sv,\n")
    endif()
    math(EXPR hex "${place} + 256" OUTPUT_FORMAT HEXADECIMAL)
    string(SUBSTRING "${hex}" 3 2 digits)
    string(APPEND order "\\x${digits}")
  endforeach()
  string(SHA1 sha1 "${whole}")
  get(definitions definitions)
  put(definitions "${definitions}const Script ${name}{\"${name}\"sv, blocks, \"${order}\"sv, \"${sha1}\"sv, ${first_part}, lines};\n")
endfunction()

# local NAME = digits for each constant of the header that a script names.
set(constants "")
foreach(constant IN LISTS CONSTANTS)
  string(TOUPPER ${constant} name)
  add_block("local ${name} = ${schema_default.${constant}}\n" index)
  list(APPEND constants ${index})
endforeach()
foreach(library names event_log records waiters queue)
  add_file(${LUA}/lib/${library}.lua ${library})
endforeach()
foreach(kind IN LISTS KINDS)
  cmake_path(GET kind STEM kind_name)
  add_file(${kind} of_kind)
  file(STRINGS ${kind} traits REGEX "^local NAME, MULTI_HOLDER, ")
  if(NOT traits MATCHES "NAME, MULTI_HOLDER, NEEDS_NO_KEY = '[a-z -]+', (true|false), (true|false)")
    message(FATAL_ERROR "${kind} does not begin with its traits")
  endif()
  set(MULTI_HOLDER ${CMAKE_MATCH_1})
  set(NEEDS_NO_KEY ${CMAKE_MATCH_2})
  set(library "${constants};${names};${of_kind};${event_log};${records};${waiters};${queue}")
  expand_blocks("${library}" expanded)
  foreach(verb IN LISTS VERBS)
    cmake_path(GET verb STEM verb_name)
    add_verb(${verb} "${library}" "${expanded}" blocks first_part)
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

get(used used)
if(used GREATER 256)
  message(FATAL_ERROR "a script names its blocks by bytes, and there are ${used}")
endif()
get(table table)
get(line_table line_table)
get(definitions definitions)
file(WRITE ${OUT} "// Generated by lua/embed.cmake.
#include \"lua/scripts.h\"

namespace rlock::scripts {

using namespace std::string_view_literals;

namespace {

constexpr const char* lines[] = {
${line_table}};

constexpr std::string_view blocks[] = {
${table}};

}  // namespace

${definitions}
}  // namespace rlock::scripts
")
