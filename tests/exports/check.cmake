# SPDX-License-Identifier: Apache-2.0
# cmake -P check.cmake ROOT: the names that include/deft declares in namespace deft are those of
# names.txt: each may clash with a name of a program that says `using namespace deft`, so that a new
# one is a decision.
cmake_minimum_required(VERSION 3.25)
set(root ${CMAKE_ARGV3})
file(GLOB_RECURSE headers ${root}/include/deft/*.hpp)
execute_process(COMMAND awk -f ${CMAKE_CURRENT_LIST_DIR}/exports.awk ${headers}
                OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
string(STRIP "${found}" found)
string(REPLACE "\n" ";" found "${found}")
list(REMOVE_DUPLICATES found)
list(SORT found)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/names.txt names)

set(new ${found})
list(REMOVE_ITEM new ${names})
set(gone ${names})
list(REMOVE_ITEM gone ${found})
list(JOIN new " " new)
list(JOIN gone " " gone)
if(new OR gone)
  message(FATAL_ERROR "deft:: is not what tests/exports/names.txt says\n"
                      "new (or for deft::ext?): ${new}\ngone: ${gone}")
endif()
