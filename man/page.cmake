# SPDX-License-Identifier: Apache-2.0
# cmake -DRLOCK=program -DIN=page.in -DOUT=page -P page.cmake: replaces @verbs@, @topic NAME@, @verb NAME@ and @examples NAME@ by the
# output of rlock help --mdoc; the last two are the parts of the output for a verb.
file(READ ${IN} page)

# The part that begins with the line "Examples:" becomes a block of its own.
function(help_of name)
  execute_process(COMMAND ${RLOCK} help --mdoc ${name} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  set(title ".Pp\nExamples:\n")
  string(FIND "${text}" "${title}" begin)
  if(NOT begin EQUAL -1)
    string(LENGTH "${title}" length)
    math(EXPR after "${begin} + ${length}")
    string(SUBSTRING "${text}" ${after} -1 examples)
    string(SUBSTRING "${text}" 0 ${begin} text)
    set(block "${examples}.Pp\n" PARENT_SCOPE)
  endif()
  set(text "${text}" PARENT_SCOPE)
endfunction()

string(REGEX MATCHALL "@(verb|topic|examples) [a-z-]+@\n" places "${page}")
foreach(place IN LISTS places)
  string(REGEX MATCH "@([a-z]+) ([a-z-]+)@" _ "${place}")
  set(kind ${CMAKE_MATCH_1})
  help_of(${CMAKE_MATCH_2})
  if(kind STREQUAL "examples")
    set(text "${block}")
  endif()
  string(REPLACE "${place}" "${text}" page "${page}")
endforeach()
execute_process(COMMAND ${RLOCK} help --mdoc OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "@verbs@\n" "${text}" page "${page}")
file(WRITE ${OUT} "${page}")
