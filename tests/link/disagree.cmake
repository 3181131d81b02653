# SPDX-License-Identifier: Apache-2.0
# cmake -P disagree.cmake SOURCE LIBRARY COMPILER FLAGS...: SOURCE does not link with LIBRARY, which
# was compiled for other instructions, and the linker names the symbol that says so.
cmake_minimum_required(VERSION 3.25)
set(source ${CMAKE_ARGV3})
set(library ${CMAKE_ARGV4})
set(compiler ${CMAKE_ARGV5})
set(flags)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 6 ${last})
  list(APPEND flags ${CMAKE_ARGV${i}})
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C
                        ${compiler} ${flags} ${source} ${library} -o /dev/null
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "links, and should not")
elseif(NOT output MATCHES "undefined [^\n]*deft::cpu::built_for<16, false>::tag")
  message(FATAL_ERROR "does not link, but for another reason:\n${output}")
endif()
