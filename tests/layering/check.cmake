# SPDX-License-Identifier: Apache-2.0
# cmake -D ROOT=include/deft -P check.cmake: which folder includes which. Names every file that
# breaks a rule, and fails.
cmake_minimum_required(VERSION 3.25)
cmake_path(ABSOLUTE_PATH ROOT NORMALIZE)

# A folder may include itself and what is listed: the pipeline's order. The umbrellas at the top
# (deft.hpp, expr.hpp, asio.hpp) may include any.
set(layer_core "")
set(layer_device core)
set(layer_graph core device)
set(layer_expr core device graph)
set(layer_op core graph expr)
set(layer_plan core device graph expr op)
set(layer_kernels core device graph expr op plan)
set(layer_execute core device graph expr op plan kernels)
set(layer_transport core device graph)
set(layer_session core device graph expr op plan kernels execute transport)
set(layer_train core device graph expr op plan kernels execute transport session data observe)
set(layer_data core graph)
set(layer_observe core device graph data)

# Sub-folders in their order: each may include those before it.
set(order_kernels spec cpu gpu)
set(order_session wire threads cluster worker master server client launch)

# Sub-folders that no other file of their folder may include: what two of them need is moved out of
# them.
set(apart_kernels cpu gpu)

# Pairs: headers of others, and the files that may include them.
set(owners
    "^boost/(asio|archive|serialization)[/.]" "^(transport/|asio\\.hpp$)"
    "^(unsupported/)?Eigen/"                  "^kernels/cpu/"
    "^(thrust|cub|cuda|nccl|cudnn|cublas|nvrtc)" "^kernels/gpu/"
    "^openssl/"                               "^transport/"
    "^zlib\\.h$"                              "^(data|observe)/"
    "^protozero/"                             "^(data|observe)/"
    "^utf8proc\\.h$"                          "^data/"
    # Not in what users include, for the time they take to compile.
    "^boost/"                                 "(\\.ipp|^transport/.*|^asio\\.hpp)$"
    "^(iostream|random|regex)$"               "\\.ipp$")

set(faults)
macro(fault text)
  list(APPEND faults "${file}: ${text}")
endmacro()

file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/*.hpp ${ROOT}/*.ipp)
foreach(file IN LISTS files)
  file(STRINGS ${ROOT}/${file} head LIMIT_COUNT 12)
  list(GET head 0 first)
  list(GET head 1 second)
  string(FIND "${second}" "// deft/${file}: " at)
  if(NOT first STREQUAL "// SPDX-License-Identifier: Apache-2.0" OR NOT at EQUAL 0)
    fault("does not open with its licence and `// deft/${file}: what it holds`")
  endif()
  if(NOT "#pragma once" IN_LIST head)
    fault("no #pragma once")
  endif()

  string(REGEX MATCH "^[^/]+" folder ${file})
  if(folder STREQUAL file)
    set(folder)
  elseif(NOT DEFINED layer_${folder})
    fault("the folder ${folder}/ is not in the table of layers")
    continue()
  endif()

  set(own_room -1)
  set(room_name)
  if(DEFINED order_${folder} AND file MATCHES "^${folder}/([^/]+)/")
    set(room_name ${CMAKE_MATCH_1})
    list(FIND order_${folder} "${room_name}" own_room)
    if(own_room EQUAL -1)
      fault("its folder is not in the order of ${folder}/")
    endif()
  endif()

  file(STRINGS ${ROOT}/${file} includes REGEX "^ *# *include")
  # core/config.hpp, first of all, says what the namespaces see of each other. (What declares the
  # functions of a library of NVIDIA's is also seen by libraries in their place.)
  file(STRINGS ${ROOT}/${file} declares REGEX "^namespace deft" LIMIT_COUNT 1)
  if(declares AND NOT file MATCHES "^core/config.hpp$|^kernels/gpu/cuda/cu[a-z]+.hpp$" AND
     NOT includes MATCHES "<deft/")
    fault("declares names, and includes nothing of deft: <deft/core/config.hpp>")
  endif()
  foreach(line IN LISTS includes)
    if(NOT line MATCHES "<([^>]+)>")
      fault("${line}: use <deft/...>")
      continue()
    endif()
    set(target ${CMAKE_MATCH_1})
    if(target MATCHES "^deft/(([^/]+)/)?[^/]+")
      set(other ${CMAKE_MATCH_2})
      if(folder AND NOT other)
        fault("includes the umbrella ${target}")
      elseif(folder AND NOT other STREQUAL folder AND NOT other IN_LIST layer_${folder})
        fault("${folder}/ may not include ${target}")
      endif()
      if(folder AND target MATCHES "^deft/${folder}/([^/]+)/")
        set(other_room ${CMAKE_MATCH_1})
        list(FIND order_${folder} "${other_room}" room)
        if(other_room IN_LIST apart_${folder} AND NOT other_room STREQUAL room_name)
          fault("${target} is for ${folder}/${other_room}/ alone")
        elseif(own_room GREATER_EQUAL 0 AND own_room LESS room)
          fault("${target} comes later in the order of ${folder}/")
        endif()
      endif()
      if(folder AND file MATCHES "hpp$" AND target MATCHES "ipp$")
        fault("a header includes the implementation ${target}")
      endif()
    endif()
    set(rules ${owners})
    while(rules)
      list(POP_FRONT rules header owner)
      if(target MATCHES "${header}" AND NOT file MATCHES "${owner}")
        fault("may not include ${target}")
        break()
      endif()
    endwhile()
  endforeach()

  # An element type can be a class, of which the standard library knows nothing: infinity() of it
  # would be 0. core/element_type.hpp knows; numbers as C++ writes them are std::integral, or
  # std::floating_point.
  if(NOT folder MATCHES "^(core|session|transport)$")
    file(READ ${ROOT}/${file} text)
    if(text MATCHES "std::((is_floating_point|is_integral|is_signed|is_unsigned)(_v)?<|numeric_limits<[A-Z])")
      fault("asks the standard library of an element type: std::${CMAKE_MATCH_1}")
    endif()
  endif()
endforeach()

# The same folders are those of the library's own files, to which operators attribute no line.
if(EXISTS ${ROOT}/expr/call.hpp)
  set(file expr/call.hpp)
  file(READ ${ROOT}/${file} text)
  get_cmake_property(names VARIABLES)
  list(FILTER names INCLUDE REGEX "^layer_")
  foreach(name IN LISTS names)
    string(REPLACE "layer_" "" name ${name})
    if(NOT text MATCHES "\"${name}\"")
      fault("is_own_file does not know the folder ${name}/")
    endif()
  endforeach()
endif()

# DEFT_IMPLEMENTATION compiles what deft::compiled does: every <folder>/<folder>.ipp.
if(EXISTS ${ROOT}/deft.hpp)
  file(GLOB umbrellas RELATIVE ${ROOT} ${ROOT}/*.hpp ${ROOT}/*.ipp)
  set(included)
  foreach(file IN LISTS umbrellas)
    file(STRINGS ${ROOT}/${file} lines REGEX "^ *# *include")
    list(APPEND included ${lines})
  endforeach()
  set(file deft.hpp)
  foreach(implementation IN LISTS files)
    cmake_path(GET implementation PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    cmake_path(GET implementation FILENAME name)
    if(name STREQUAL "${folder}.ipp" AND NOT included MATCHES "<deft/${implementation}>")
      fault("does not include ${implementation} under DEFT_IMPLEMENTATION")
    endif()
  endforeach()
endif()

list(LENGTH files count)
if(count EQUAL 0)
  message(FATAL_ERROR "There are no headers below ${ROOT}.")
endif()
if(faults)
  foreach(text IN LISTS faults)
    message(NOTICE "${text}")
  endforeach()
  message(FATAL_ERROR "The layering is broken.")
endif()
message(STATUS "Layering: ${count} files keep to it")
