# SPDX-License-Identifier: Apache-2.0
# The targets deft::deft, deft::native, deft::compiled, with Thrust deft::simulated_gpus, and with
# nvcc deft::gpu, from the headers in DEFT_INCLUDE_DIR. gdb loads DEFT_GDB_SCRIPT for programs that link deft::compiled. Both
# our build and the installed package include this file: consumers compile the sources themselves,
# with their own flags.

# Implementation files that are compiled separately from <folder>/<folder>.ipp, which would take too
# long with them: paths below include/deft.
set(DEFT_EXTRA_UMBRELLAS kernels/cpu/cpu_elementwise.ipp kernels/cpu/cpu_linear.ipp)
set(DEFT_THRUST_UMBRELLAS kernels/gpu/gpu_elementwise.ipp kernels/gpu/gpu_kernels.ipp)
# Those of deft::simulated_gpus.
set(DEFT_SIMULATED_UMBRELLAS kernels/gpu/simulated/simulated.ipp ${DEFT_THRUST_UMBRELLAS})
# The files that nvcc compiles, too.
set(DEFT_CUDA_UMBRELLAS ${DEFT_THRUST_UMBRELLAS} kernels/gpu/cuda/cuda_sort.ipp)

include(CMakeFindDependencyMacro)
# Makes the targets visible to all that link deft, not only in this folder.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Eigen3 3.4)
find_dependency(Boost 1.81 CONFIG COMPONENTS json program_options serialization)
find_dependency(OpenSSL 3 COMPONENTS Crypto SSL)
find_dependency(ZLIB)
find_dependency(Threads)
# Headers alone, of Debian's libprotozero-dev.
find_path(DEFT_PROTOZERO_DIR protozero/pbf_reader.hpp REQUIRED)
mark_as_advanced(DEFT_PROTOZERO_DIR)
# Unicode's classes of characters, of Debian's libutf8proc-dev.
find_path(DEFT_UTF8PROC_DIR utf8proc.h REQUIRED)
find_library(DEFT_UTF8PROC_LIBRARY utf8proc REQUIRED)
mark_as_advanced(DEFT_UTF8PROC_DIR DEFT_UTF8PROC_LIBRARY)
# nvcc, for GPUs; Thrust, of the CUDA Toolkit or by itself, for simulated ones.
find_package(CUDAToolkit 12 QUIET)
unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
find_path(DEFT_THRUST_DIR thrust/for_each.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
          PATH_SUFFIXES cccl)
mark_as_advanced(DEFT_THRUST_DIR)

if(TARGET deft::deft)
  return()
endif()

# The usage requirements of every file. They include the libraries of the implementation, for
# programs that define DEFT_IMPLEMENTATION themselves.
add_library(deft INTERFACE)
add_library(deft::deft ALIAS deft)
# A consumer's warnings are about its own code; ours are about deft's headers, too.
set(system SYSTEM)
if(PROJECT_NAME STREQUAL "deft" AND PROJECT_IS_TOP_LEVEL)
  set(system)
endif()
target_include_directories(deft ${system} INTERFACE ${DEFT_INCLUDE_DIR})
target_include_directories(deft SYSTEM INTERFACE ${DEFT_PROTOZERO_DIR} ${DEFT_UTF8PROC_DIR})
target_compile_features(deft INTERFACE cxx_std_20)
# In every file or in none (one definition rule); nvcc cannot compile Asio without it.
target_compile_definitions(deft INTERFACE BOOST_ASIO_DISABLE_SFINAE_VARIABLE_TEMPLATES)
if(NOT DEFT_THRUST_DIR)
  # The compiler may find Thrust in its own folders where DEFT_THRUST_DIR is OFF.
  target_compile_definitions(deft INTERFACE DEFT_NO_THRUST)
endif()
target_link_libraries(deft INTERFACE Eigen3::Eigen Boost::headers Boost::json Boost::program_options
                                     Boost::serialization OpenSSL::SSL OpenSSL::Crypto
                                     ZLIB::ZLIB ${DEFT_UTF8PROC_LIBRARY} Threads::Threads
                                     ${CMAKE_DL_LIBS})

# Flags for the build machine. g++ 12 tunes for an older Zen than the one it runs on, which makes
# Eigen's matrix products a fifth slower.
add_library(deft_native INTERFACE)
add_library(deft::native ALIAS deft_native)
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-march=native DEFT_HAS_MARCH_NATIVE)
if(DEFT_HAS_MARCH_NATIVE)
  target_compile_options(deft_native INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(deft_native INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-mtune=generic>)
  endif()
endif()

# The implementation: one source for each <folder>/<folder>.ipp, so that cores compile in parallel.
include(${CMAKE_CURRENT_LIST_DIR}/deftFiles.cmake OPTIONAL RESULT_VARIABLE deft_installed)
if(NOT deft_installed)
  file(GLOB_RECURSE deft_files CONFIGURE_DEPENDS RELATIVE ${DEFT_INCLUDE_DIR}/deft
       ${DEFT_INCLUDE_DIR}/deft/*.ipp)
endif()
# Every program links an object with a section that names the file of deft's pretty-printers to gdb,
# in the form of gdb's manual ("The .debug_gdb_scripts section").
option(DEFT_GDB "Name deft's pretty-printers to gdb in programs that link deft::compiled" ON)
set(deft_gdb "asm(R\"(.pushsection .debug_gdb_scripts, \"MS\", @progbits, 1
.byte 1
.asciz \"${DEFT_GDB_SCRIPT}\"
.popsection)\");
")
set(deft_sources)
set(deft_simulated_sources)
foreach(umbrella IN LISTS deft_files)
  cmake_path(GET umbrella STEM name)
  cmake_path(GET umbrella PARENT_PATH folder)
  cmake_path(GET folder FILENAME folder)
  if(umbrella IN_LIST DEFT_SIMULATED_UMBRELLAS)
    set(list deft_simulated_sources)
  elseif(name STREQUAL folder OR umbrella IN_LIST DEFT_EXTRA_UMBRELLAS)
    set(list deft_sources)
  else()
    continue()
  endif()
  string(MAKE_C_IDENTIFIER "${umbrella}" name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/deft_compiled/${name}.cpp)
  set(content "#include <deft/${umbrella}>\n")
  if(DEFT_GDB AND umbrella STREQUAL "core/core.ipp")
    string(APPEND content "${deft_gdb}")
  endif()
  file(CONFIGURE OUTPUT ${source} CONTENT "${content}" @ONLY)
  list(APPEND ${list} ${source})
endforeach()
add_library(deft_compiled STATIC EXCLUDE_FROM_ALL ${deft_sources})
add_library(deft::compiled ALIAS deft_compiled)
target_link_libraries(deft_compiled PUBLIC deft)
# Whoever names no build type gets no optimization from CMake.
get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
get_directory_property(options COMPILE_OPTIONS)
if(NOT multi_config AND NOT CMAKE_BUILD_TYPE AND NOT "${CMAKE_CXX_FLAGS};${options}" MATCHES "-O[1-9sfgz]")
  message(WARNING "deft: kernels will not be optimized, because CMAKE_BUILD_TYPE is empty: use "
                  "-D CMAKE_BUILD_TYPE=Release")
endif()
if(DEFT_NATIVE)
  target_link_libraries(deft_compiled PUBLIC deft_native)
endif()
# GPUs that the processor simulates, for programs that link it: its objects, which register
# themselves.
set(deft_libraries deft_compiled)
if(DEFT_THRUST_DIR)
  add_library(deft_simulated_gpus OBJECT EXCLUDE_FROM_ALL ${deft_simulated_sources})
  add_library(deft::simulated_gpus ALIAS deft_simulated_gpus)
  target_link_libraries(deft_simulated_gpus PUBLIC deft_compiled)
  target_include_directories(deft_simulated_gpus SYSTEM PRIVATE ${DEFT_THRUST_DIR})
  list(APPEND deft_libraries deft_simulated_gpus)
endif()
# Shared libraries can link position-independent code. Without -fno-semantic-interposition g++ would
# inline less in it, because other libraries could replace its functions.
foreach(library IN LISTS deft_libraries)
  if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
    set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_compile_options(${library} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
endforeach()
# Only the file of simulated GPUs sees OpenMP: other headers may depend on it.
option(DEFT_SIMULATED_GPU_OPENMP "Simulated GPUs run their kernels on OpenMP's threads" OFF)
if(DEFT_THRUST_DIR AND DEFT_SIMULATED_GPU_OPENMP)
  find_package(OpenMP COMPONENTS CXX)
  if(OpenMP_CXX_FOUND)
    separate_arguments(openmp NATIVE_COMMAND "${OpenMP_CXX_FLAGS}")
    set_source_files_properties(
      ${CMAKE_CURRENT_BINARY_DIR}/deft_compiled/kernels_gpu_simulated_simulated_ipp.cpp
      PROPERTIES COMPILE_OPTIONS "${openmp}")
    target_link_libraries(deft_simulated_gpus PUBLIC ${OpenMP_CXX_LIBRARIES})
  else()
    message(WARNING "deft: OpenMP was not found: simulated GPUs run their kernels on one thread")
    set(DEFT_SIMULATED_GPU_OPENMP OFF)
  endif()
endif()

# GPU kernels. nvcc is called directly: CMake 3.25 refuses C++20 for its CUDA language, which then
# consumers need not enable.
set(DEFT_CUDA AUTO CACHE STRING
    "Compile kernels for GPUs where the CUDA Toolkit is found: ON, OFF, or AUTO, where a driver is")
set(deft_cuda ${DEFT_CUDA})
if(DEFT_CUDA STREQUAL "AUTO")
  set(deft_cuda OFF)
  if(EXISTS /proc/driver/nvidia/version OR EXISTS /dev/dxg)
    set(deft_cuda ON)
  endif()
endif()
set(DEFT_CUDA_ARCHITECTURES 80-real 90-real 90-virtual CACHE STRING
    "Architectures of GPUs, as for CMAKE_CUDA_ARCHITECTURES")
set(deft_gpus)
set(deft_cuda_objects)
if(deft_cuda AND TARGET CUDA::cudart_static AND CUDAToolkit_NVCC_EXECUTABLE)
  # clang does not accept what nvcc generates for Thrust's kernels. Objects of both link.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    find_program(DEFT_CUDA_HOST_COMPILER g++ DOC "The compiler of the host's part of .cu files")
  endif()
  if(NOT DEFT_CUDA_HOST_COMPILER)
    set(DEFT_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  set(deft_nvcc ${CUDAToolkit_NVCC_EXECUTABLE} -ccbin ${DEFT_CUDA_HOST_COMPILER} -std=c++20)
  if(NOT "${DEFT_NVCC_TRIED}" STREQUAL "${deft_nvcc}")
    set(source ${CMAKE_CURRENT_BINARY_DIR}/deft_compiled/try_nvcc.cu)
    file(WRITE ${source} "#include <string>\n__global__ void f() {}\n")
    execute_process(COMMAND ${deft_nvcc} -c ${source} -o ${source}.o
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE said)
    set(DEFT_NVCC_TRIED "${deft_nvcc}" CACHE INTERNAL "")
    set(DEFT_NVCC_SAID "" CACHE INTERNAL "")
    if(failed)
      set(DEFT_NVCC_SAID "${said}" CACHE INTERNAL "")
    endif()
  endif()
  if(DEFT_NVCC_SAID)
    message(WARNING "${CUDAToolkit_NVCC_EXECUTABLE} does not work with ${DEFT_CUDA_HOST_COMPILER}, so "
                    "that there will be no kernels for GPUs; -D DEFT_CUDA=OFF says so without this "
                    "warning.\n${DEFT_NVCC_SAID}")
  else()
    set(deft_gpus "CUDA ${CUDAToolkit_VERSION} for ${DEFT_CUDA_ARCHITECTURES}")
  endif()
endif()
if(deft_gpus)
  # Products are rounded before they are added to anything, as on the host.
  set(flags --expt-relaxed-constexpr --fmad=false)
  set(lowest)
  foreach(architecture IN LISTS DEFT_CUDA_ARCHITECTURES)
    if(NOT architecture MATCHES "^([0-9]+)[af]?(-real|-virtual)?$")
      message(FATAL_ERROR "DEFT_CUDA_ARCHITECTURES: ${architecture} is not an architecture; "
                          "expected 90, 90-real or 90-virtual")
    endif()
    if(NOT lowest OR CMAKE_MATCH_1 LESS lowest)
      set(lowest ${CMAKE_MATCH_1})
    endif()
    set(kind "${CMAKE_MATCH_2}")
    string(REGEX MATCH "^[0-9]+[af]?" number ${architecture})
    if(NOT kind STREQUAL "-virtual")
      list(APPEND flags -gencode=arch=compute_${number},code=sm_${number})
    endif()
    if(NOT kind STREQUAL "-real")
      list(APPEND flags -gencode=arch=compute_${number},code=compute_${number})
    endif()
  endforeach()
  # Host code has the same flags as other files, except warnings and what -Xcompiler cannot pass on.
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(host NATIVE_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  list(FILTER host EXCLUDE REGEX "^-W|^-std|,")
  if(DEFT_NATIVE)
    get_target_property(native deft_native INTERFACE_COMPILE_OPTIONS)
    string(REPLACE "$<COMPILE_LANGUAGE:CXX>" 1 native "${native}")
    list(APPEND host ${native})
  endif()
  list(TRANSFORM host PREPEND "-Xcompiler=")
  # The compiler's own folders must not be passed, because they would come first.
  set(includes $<TARGET_PROPERTY:deft_compiled,INCLUDE_DIRECTORIES>)
  set(includes $<FILTER:$<REMOVE_DUPLICATES:${includes}>,EXCLUDE,^/usr/include$|/cccl$>)
  set(definitions $<REMOVE_DUPLICATES:$<TARGET_PROPERTY:deft_compiled,COMPILE_DEFINITIONS>>)
  set(pic $<TARGET_PROPERTY:deft_compiled,POSITION_INDEPENDENT_CODE>)
  foreach(umbrella IN LISTS DEFT_CUDA_UMBRELLAS)
    string(MAKE_C_IDENTIFIER "${umbrella}" name)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/deft_compiled/${name}.cu)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/deft_compiled/${name}.cu.o)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <deft/${umbrella}>\n")
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${deft_nvcc} ${flags} ${host}
              $<$<BOOL:${pic}>:-Xcompiler=-fPIC>
              $<$<BOOL:${DEFT_WERROR}>:-Werror=all-warnings> "-I$<JOIN:${includes},;-I>"
              "-D$<JOIN:${definitions},;-D>" -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Building CUDA object deft_compiled/${name}.cu.o" COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(deft_compiled PRIVATE ${object})
    list(APPEND deft_cuda_objects ${object})
  endforeach()
  set_source_files_properties(
    ${CMAKE_CURRENT_BINARY_DIR}/deft_compiled/kernels_gpu_gpu_ipp.cpp
    PROPERTIES COMPILE_DEFINITIONS DEFT_HAS_CUDA=${lowest})
  target_link_libraries(deft_compiled PRIVATE CUDA::cudart_static)

  # For targets with .cu files, whose project has enabled the language CUDA. Their host code may use
  # the same instructions as the rest of the program.
  add_library(deft_gpu INTERFACE)
  add_library(deft::gpu ALIAS deft_gpu)
  target_link_libraries(deft_gpu INTERFACE deft_compiled CUDA::cudart_static)
  list(FILTER host INCLUDE REGEX "=(\\$<1:)?-m")
  target_compile_options(deft_gpu INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;${host}>")
endif()

if(DEFT_THRUST_DIR)
  file(STRINGS ${DEFT_THRUST_DIR}/thrust/version.h version REGEX "define THRUST_VERSION +[0-9]+")
  string(REGEX REPLACE ".*define THRUST_VERSION +([0-9]+).*" "\\1" version "${version}")
  math(EXPR major "${version} / 100000")
  math(EXPR minor "${version} / 100 % 1000")
  string(APPEND major ".${minor}")
  if(DEFT_SIMULATED_GPU_OPENMP)
    string(APPEND major " and OpenMP")
  endif()
  list(APPEND deft_gpus "deft::simulated_gpus by Thrust ${major}")
endif()
if(NOT deft_gpus)
  set(deft_gpus "none: neither the CUDA Toolkit nor Thrust is used")
endif()
if(DEFT_CUDA STREQUAL "AUTO" AND NOT deft_cuda AND CUDAToolkit_NVCC_EXECUTABLE)
  list(APPEND deft_gpus "no kernels of CUDA, as there is no driver (-D DEFT_CUDA=ON compiles them)")
endif()
include(${CMAKE_CURRENT_LIST_DIR}/deftPrebuilt.cmake OPTIONAL)  # where it was built before
string(REPLACE ";" ", " deft_gpus "${deft_gpus}")
message(STATUS "deft: GPUs: ${deft_gpus}")
