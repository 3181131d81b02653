# SPDX-License-Identifier: Apache-2.0
# cmake -P check.cmake SOURCE COMPILER FLAGS...: a file that opens with `// build error: REGEX` (CMake's
# dialect) does not compile, the only error says REGEX, and all of it is a screenful; one that opens
# with `// builds` does compile. A line `// got: TEXT` is what the compiler says that it got, without
# namespaces and blanks: `takes<add,tensor<int,3>,double>`. `// several errors` allows more than one;
# `// flags: FLAG…` are for this file. Of clang, only the sentence of the first error and the number of
# lines are held against it.
cmake_minimum_required(VERSION 3.25)
set(source ${CMAKE_ARGV3})
set(compiler ${CMAKE_ARGV4})
set(flags ${CMAKE_ARGV5} ${CMAKE_ARGV6})

# Of what a compiler prints, without the chain of includes and clang's number of errors.
set(most_lines 18)
if(compiler MATCHES "clang")
  set(most_lines 15)
  set(clang TRUE)
endif()

file(STRINGS ${source} head LIMIT_COUNT 1)
file(STRINGS ${source} got REGEX "^// got: ")
string(REPLACE "// got: " "" got "${got}")
file(STRINGS ${source} own_flags REGEX "^// flags: ")
string(REPLACE "// flags: " "" own_flags "${own_flags}")
separate_arguments(own_flags UNIX_COMMAND "${own_flags}")
file(STRINGS ${source} several REGEX "^// several errors$")
execute_process(COMMAND ${compiler} ${flags} ${own_flags} -fsyntax-only ${source} RESULT_VARIABLE status OUTPUT_VARIABLE output
                ERROR_VARIABLE output)
# clang prints the text of an assertion as a literal.
string(REPLACE "\\\"" "\"" output "${output}")
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

  # Semicolons and brackets would make lists of it.
  string(REGEX REPLACE "[][;]" " " printed "${output}")
  string(REGEX MATCHALL "(^|\n)[^\n]* error: " errors "${printed}")
  list(LENGTH errors count)
  if(count GREATER 1 AND NOT several AND NOT clang)
    message(FATAL_ERROR "${count} errors, where one says it:\n${output}")
  endif()
  string(REGEX REPLACE "(In file included)? +from [^\n]*[,:]\n" "" printed "${printed}")
  string(REGEX REPLACE "[0-9]+ errors? generated.\n" "" printed "${printed}")
  string(REGEX MATCHALL "\n" ends "${printed}")
  list(LENGTH ends count)
  if(count GREATER most_lines)
    message(FATAL_ERROR "${count} lines, of which ${most_lines} are read:\n${output}")
  endif()

  if(got AND NOT clang)
    string(REGEX REPLACE "deft::|ext::|op::|detail::|std::|__cxx11::| " "" printed "${printed}")
    string(REGEX REPLACE "(long|short|unsigned)int" "\\1" printed "${printed}")
    string(FIND "${printed}" "${got}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "does not say ${got}:\n${output}")
    endif()
  endif()
  message(STATUS "${first}")
else()
  message(FATAL_ERROR "the first line is `// build error: REGEX` or `// builds`")
endif()
