# SPDX-License-Identifier: Apache-2.0
# cmake -D TO=FILE.cpp -P embed.cmake: the tables beside this file as strings, so that the program
# with the tests needs no other file.
cmake_minimum_required(VERSION 3.25)
file(GLOB tables ${CMAKE_CURRENT_LIST_DIR}/*.txt)
set(entries "")
foreach(table IN LISTS tables)
  cmake_path(GET table FILENAME name)
  file(READ ${table} text)
  string(APPEND entries "    {\"${name}\", R\"table(${text})table\"},\n")
endforeach()
file(WRITE ${TO} "#include \"op/cases.hpp\"\n
const std::vector<testing::case_table> testing::case_tables = {\n${entries}};\n")
