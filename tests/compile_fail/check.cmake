# SPDX-License-Identifier: Apache-2.0
# cmake -P check.cmake SOURCE COMPILER FLAGS: a file that opens with `// build error: REGEX` (CMake's
# dialect) does not compile, and the first error says REGEX; one that opens with `// builds` does.
cmake_minimum_required(VERSION 3.25)
set(source ${CMAKE_ARGV3})
set(compiler ${CMAKE_ARGV4})
set(flags ${CMAKE_ARGV5})

file(STRINGS ${source} head LIMIT_COUNT 1)
execute_process(COMMAND ${compiler} ${flags} -fsyntax-only ${source} RESULT_VARIABLE status OUTPUT_VARIABLE output
                ERROR_VARIABLE output)
string(REGEX MATCH "[^\n]*error: [^\n]*" first "${output}")

if(head STREQUAL "// builds")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "does not build:\n${output}")
  endif()
elseif(head MATCHES "^// build error: (.+)$")
  set(expected "${CMAKE_MATCH_1}")
  if(status EQUAL 0)
    message(FATAL_ERROR "builds, and should say: ${expected}")
  elseif(NOT first MATCHES "${expected}")
    message(FATAL_ERROR "expected: ${expected}\nfirst error: ${first}\n\n${output}")
  endif()
  message(STATUS "${first}")
else()
  message(FATAL_ERROR "the first line is `// build error: REGEX` or `// builds`")
endif()
