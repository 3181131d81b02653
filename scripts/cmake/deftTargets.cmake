# SPDX-License-Identifier: Apache-2.0
# deft::deft, deft::native and deft::compiled, from the headers in DEFT_INCLUDE_DIR. Our own build
# includes this file, and so does the installed package: consumers compile the sources themselves,
# with their own flags.

# Implementation files that are compiled on their own beside <folder>/<folder>.ipp, because the
# folder's one would take too long: paths below include/deft.
set(DEFT_EXTRA_UMBRELLAS execute/cpu/cpu_elementwise.ipp execute/cpu/cpu_linear.ipp)
set(DEFT_THRUST_UMBRELLAS execute/gpu/gpu_elementwise.ipp execute/gpu/gpu_kernels.ipp)

include(CMakeFindDependencyMacro)
# Visible to whoever links deft, not only in this folder.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Eigen3 3.4)
find_dependency(Boost 1.81 CONFIG COMPONENTS json program_options serialization)
find_dependency(OpenSSL 3 COMPONENTS Crypto)
find_dependency(ZLIB)
find_dependency(Threads)
unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
# Thrust, of the CUDA Toolkit or by itself, for simulated GPUs.
find_package(CUDAToolkit 12 QUIET)
find_path(DEFT_THRUST_DIR thrust/for_each.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
          PATH_SUFFIXES cccl)
mark_as_advanced(DEFT_THRUST_DIR)

if(TARGET deft::deft)
  return()
endif()

# What every file of a program needs. It also links the libraries of the implementation, for
# programs that say DEFT_IMPLEMENTATION themselves.
add_library(deft INTERFACE)
add_library(deft::deft ALIAS deft)
target_include_directories(deft INTERFACE ${DEFT_INCLUDE_DIR})
target_compile_features(deft INTERFACE cxx_std_20)
# In every file or in none (one definition rule); nvcc cannot compile Asio without it.
target_compile_definitions(deft INTERFACE BOOST_ASIO_DISABLE_SFINAE_VARIABLE_TEMPLATES)
target_link_libraries(deft INTERFACE Eigen3::Eigen Boost::headers Boost::json Boost::program_options
                                     Boost::serialization OpenSSL::Crypto ZLIB::ZLIB
                                     Threads::Threads ${CMAKE_DL_LIBS})

# Flags for the machine that builds. g++ 12 tunes for an older Zen than it is on, which costs
# Eigen's matrix products a fifth.
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
file(GLOB_RECURSE deft_files CONFIGURE_DEPENDS RELATIVE ${DEFT_INCLUDE_DIR}/deft
     ${DEFT_INCLUDE_DIR}/deft/*.ipp)
if(DEFT_THRUST_DIR)
  list(APPEND DEFT_EXTRA_UMBRELLAS ${DEFT_THRUST_UMBRELLAS})
endif()
set(deft_sources)
foreach(umbrella IN LISTS deft_files)
  cmake_path(GET umbrella STEM name)
  cmake_path(GET umbrella PARENT_PATH folder)
  cmake_path(GET folder FILENAME folder)
  if(NOT name STREQUAL folder AND NOT umbrella IN_LIST DEFT_EXTRA_UMBRELLAS)
    continue()
  endif()
  string(MAKE_C_IDENTIFIER "${umbrella}" name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/deft_compiled/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <deft/${umbrella}>\n")
  list(APPEND deft_sources ${source})
endforeach()
add_library(deft_compiled STATIC EXCLUDE_FROM_ALL ${deft_sources})
add_library(deft::compiled ALIAS deft_compiled)
target_link_libraries(deft_compiled PUBLIC deft)
if(DEFT_THRUST_DIR)
  target_include_directories(deft_compiled SYSTEM PRIVATE ${DEFT_THRUST_DIR})
endif()
if(DEFT_NATIVE)
  target_link_libraries(deft_compiled PUBLIC deft_native)
endif()
