# SPDX-License-Identifier: Apache-2.0
# cmake -P example.cmake ROOT FOLDER COMPILER FLAGS: writes the header and the test of the operation
# that CONTRIBUTING.md adds into FOLDER, and compiles them.
cmake_minimum_required(VERSION 3.25)
set(root ${CMAKE_ARGV3})
set(folder ${CMAKE_ARGV4})
set(compiler ${CMAKE_ARGV5})
set(flags ${CMAKE_ARGV6})

file(READ ${root}/CONTRIBUTING.md rest)
foreach(file IN ITEMS deft/op/log_add_exp.hpp test_log_add_exp.cpp)
  set(opening "```cpp\n// SPDX")
  string(FIND "${rest}" "${opening}" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "CONTRIBUTING.md has no block for ${file}")
  endif()
  math(EXPR begin "${begin} + 7")
  string(SUBSTRING "${rest}" ${begin} -1 rest)
  string(FIND "${rest}" "```" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  string(SUBSTRING "${rest}" ${end} -1 rest)
  file(WRITE ${folder}/${file} "${block}")
endforeach()
execute_process(COMMAND ${compiler} ${flags} -I${folder} -I${root}/tests/op -fsyntax-only
                        ${folder}/test_log_add_exp.cpp RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "The example of CONTRIBUTING.md does not compile.")
endif()
