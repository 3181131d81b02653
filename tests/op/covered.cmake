# SPDX-License-Identifier: Apache-2.0
# cmake -D ROOT=CHECKOUT -P covered.cmake: every include/deft/op/NAME.hpp has tests/op/test_NAME.cpp,
# or a case in tests/op/cases/ for each operation that it defines.
cmake_minimum_required(VERSION 3.25)

# Headers of no operation, and of operations that are not of values alone: where their tests are.
set(elsewhere
    assign=op/test_variable.cpp          # a variable's value
    global_step=train/test_optimizer.cpp # a variable
    initialized=train/test_restoring.cpp # whether a variable has a value
    name=graph/test_graph.cpp            # an alias
    no_op=op/test_group.cpp              # no value
    save=train/test_saver.cpp)           # files

set(cases "")
file(GLOB tables ${ROOT}/tests/op/cases/*.txt)
foreach(table IN LISTS tables)
  file(STRINGS ${table} lines REGEX "^[a-z]")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^[a-z0-9_]+" operation "${line}")
    list(APPEND cases ${operation})
  endforeach()
endforeach()

file(GLOB headers ${ROOT}/include/deft/op/*.hpp)
set(by_test 0)
set(by_cases 0)
set(missing "")
foreach(header IN LISTS headers)
  cmake_path(GET header STEM name)
  set(entry ${elsewhere})
  list(FILTER entry INCLUDE REGEX "^${name}=")
  if(EXISTS ${ROOT}/tests/op/test_${name}.cpp)
    math(EXPR by_test "${by_test} + 1")
    if(entry)
      string(APPEND missing "  ${name}.hpp has tests/op/test_${name}.cpp, and is listed here\n")
    endif()
  elseif(entry)
    string(REGEX REPLACE "^.*=" "" file "${entry}")
    if(NOT EXISTS ${ROOT}/tests/${file})
      string(APPEND missing "  ${name}.hpp is tested by tests/${file}, which is not there\n")
    endif()
    list(REMOVE_ITEM elsewhere ${entry})
  else()
    file(STRINGS ${header} operations REGEX "std::string_view name = \"[a-z0-9_]+\"")
    list(TRANSFORM operations REPLACE "^.*\"([a-z0-9_]+)\".*$" "\\1")
    if(NOT operations)
      set(operations ${name})  # a function that writes other operations
    endif()
    foreach(operation IN LISTS operations)
      if(NOT operation IN_LIST cases)
        string(APPEND missing "  ${name}.hpp: no case of ${operation}\n")
      endif()
    endforeach()
    math(EXPR by_cases "${by_cases} + 1")
  endif()
endforeach()
message("${by_test} headers have a test of their name, ${by_cases} have cases")
if(elsewhere)
  string(APPEND missing "  no such headers: ${elsewhere}\n")
endif()
if(missing)
  message(FATAL_ERROR "tests/op/test_NAME.cpp, or cases in tests/op/cases/, are missing:\n${missing}")
endif()
if(by_test EQUAL 0 OR by_cases EQUAL 0)
  message(FATAL_ERROR "nothing was looked at")
endif()
