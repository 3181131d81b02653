# SPDX-License-Identifier: Apache-2.0
# cmake -P dependencies.cmake HEADER FORBIDDEN COMPILER FLAGS: what a user's file pays for. No file
# that HEADER includes, however far down, may match the regular expression FORBIDDEN.
cmake_minimum_required(VERSION 3.25)
set(header ${CMAKE_ARGV3})
set(forbidden ${CMAKE_ARGV4})
execute_process(COMMAND ${CMAKE_ARGV5} ${CMAKE_ARGV6} -M -x c++ ${header} OUTPUT_VARIABLE output
                RESULT_VARIABLE status ERROR_VARIABLE error)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${error}")
endif()
string(REGEX REPLACE "[\\ \n]+" ";" files "${output}")
list(LENGTH files count)
list(FILTER files INCLUDE REGEX "${forbidden}")
if(files OR count LESS 10)
  list(JOIN files "\n" files)
  message(FATAL_ERROR "${header} includes ${count} files, among them\n${files}")
endif()
message(STATUS "${header}: ${count} files")
