# SPDX-License-Identifier: Apache-2.0
# cmake -DRLOCK=program -DIN=page.in -DOUT=page -P page.cmake: replaces @verb NAME@ and @verbs@ by the output of rlock help.
file(READ ${IN} page)
string(REGEX MATCHALL "@verb [a-z-]+@" places "${page}")
foreach(place IN LISTS places)
  string(REGEX REPLACE "@verb ([a-z-]+)@" "\\1" verb ${place})
  execute_process(COMMAND ${RLOCK} help --mdoc ${verb} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "${place}\n" "${text}" page "${page}")
endforeach()
execute_process(COMMAND ${RLOCK} help --mdoc OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "@verbs@\n" "${text}" page "${page}")
file(WRITE ${OUT} "${page}")
