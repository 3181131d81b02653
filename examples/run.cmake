# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=... -DAS=... -P run.cmake SOURCE PROGRAM [ARGUMENT...]: runs an example in FOLDER,
# which is made anew: what an earlier run wrote there is gone. The example has to end well and to say
# what the lines `// prints: REGEX` of its source promise. What it says is left in FOLDER.txt. Where
# AS is not empty, its losses differ from those in AS.txt by what `// same losses: MOST` allows.
cmake_minimum_required(VERSION 3.25)
set(source ${CMAKE_ARGV5})
set(command)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 6 ${last})
  list(APPEND command "${CMAKE_ARGV${i}}")
endforeach()
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(COMMAND ${command} WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE status
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
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
file(WRITE "${FOLDER}.txt" "${output}")
if(AS)
  file(STRINGS ${source} most REGEX "^// same losses: ")
  string(REGEX REPLACE "^// same losses: " "" most "${most}")
  execute_process(COMMAND awk -v most=${most} -f ${CMAKE_CURRENT_LIST_DIR}/same_losses.awk
                          "${AS}.txt" "${FOLDER}.txt" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "its losses should be those in ${AS}.txt, but for ${most}")
  endif()
endif()
