// SPDX-License-Identifier: Apache-2.0
// tests/cuda/fake_cublaslt.hpp: a cuBLASLt that computes what descriptors say on the host's memory,
// on streams of the fake runtime, and looks whether they hold together.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

namespace fake {

/// What tests see of the library, and do to it.
struct cublaslt_state {
  void (*push)(cudaStream_t on, std::function<void()> work) = nullptr;
  int handles = 0, descriptors = 0;  ///< that were made and not destroyed
  int asked = 0;                     ///< heuristics
  int products = 0;
  int compute = 0;                  ///< type, of the last product
  std::size_t offered = 0;          ///< bytes of workspace, to the last heuristic
  int no_handle = 0;                ///< what a call for a handle answers; 0: it gets one
  int no_algorithm = 0;             ///< what heuristics answer; 0: an algorithm
  bool none_found = false;          ///< they answer success, with no algorithm
  int no_product = 0;               ///< what products answer
  std::vector<std::string> faults;  ///< mistakes of the caller
};

}  // namespace fake

/// Exported by the library.
extern "C" fake::cublaslt_state* fake_cublaslt();
