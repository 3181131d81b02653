# SPDX-License-Identifier: Apache-2.0
# cmake -P disagree.cmake SYMBOL SOURCE COMPILER FLAGS...: SOURCE does not link with these flags,
# among which there may be a library, and the first thing that the linker misses is SYMBOL, a CMake
# regular expression.
cmake_minimum_required(VERSION 3.25)
set(symbol ${CMAKE_ARGV3})
set(source ${CMAKE_ARGV4})
set(compiler ${CMAKE_ARGV5})
set(flags)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 6 ${last})
  list(APPEND flags ${CMAKE_ARGV${i}})
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C
                        ${compiler} ${source} ${flags} -o /dev/null
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "links, and should not")
endif()
string(REGEX MATCH "undefined [^\n]*" first "${output}")
if(NOT first MATCHES "deft::${symbol}")
  message(FATAL_ERROR "expected: ${symbol}\nfirst: ${first}\n\n${output}")
endif()
