# SPDX-License-Identifier: Apache-2.0
# cmake -P run.cmake SOURCE PROGRAM [ARGUMENT...]: runs an example, which has to end well and to say
# what the lines `// prints: REGEX` of its source promise.
cmake_minimum_required(VERSION 3.25)
set(source ${CMAKE_ARGV3})
set(command)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 4 ${last})
  list(APPEND command "${CMAKE_ARGV${i}}")
endforeach()
execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE output
                ERROR_VARIABLE errors)
message("${output}${errors}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "it ended with ${status}")
endif()
file(STRINGS ${source} promises REGEX "^// prints: ")
foreach(promise IN LISTS promises)
  string(REGEX REPLACE "^// prints: " "" promise "${promise}")
  if(NOT output MATCHES "${promise}")
    message(FATAL_ERROR "it should say: ${promise}")
  endif()
endforeach()
