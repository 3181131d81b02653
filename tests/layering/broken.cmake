# SPDX-License-Identifier: Apache-2.0
# The check itself: every file below broken/ breaks one rule, and is named with it.
execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${CMAKE_CURRENT_LIST_DIR}/broken
                        -P ${CMAKE_CURRENT_LIST_DIR}/check.cmake
                RESULT_VARIABLE status ERROR_VARIABLE found)
file(READ ${CMAKE_CURRENT_LIST_DIR}/broken/expected.txt expected)
string(FIND "${found}" "${expected}" at)
if(status EQUAL 0 OR NOT at EQUAL 0)
  message(FATAL_ERROR "expected:\n${expected}\nfound (${status}):\n${found}")
endif()

# Likewise of the lines: a folder with too many, one without a budget, and a budget without one.
execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${CMAKE_CURRENT_LIST_DIR}/broken
                        -D BUDGETS=${CMAKE_CURRENT_LIST_DIR}/broken/lines.txt
                        -P ${CMAKE_CURRENT_LIST_DIR}/lines.cmake
                RESULT_VARIABLE status ERROR_VARIABLE found)
set(expected "misc/ has no budget of lines
gone/ has no files: its budget goes
graph/ has 15 lines, its budget is 10

folder                lines  budget
.                         4     100
")
string(FIND "${found}" "${expected}" at)
if(status EQUAL 0 OR NOT at EQUAL 0)
  message(FATAL_ERROR "expected:\n${expected}\nfound (${status}):\n${found}")
endif()
