// SPDX-License-Identifier: Apache-2.0
// tests/cuda/fake_cudnn.hpp: a cuDNN that computes what descriptors say on the host's memory, on
// streams of the fake runtime, and looks whether they hold together.
#pragma once
#include <cuda_runtime_api.h>

#include <deft/kernels/gpu/cuda/cudnn.hpp>
#include <functional>
#include <string>
#include <vector>

namespace fake {

/// What tests see of the library, and do to it.
struct cudnn_state {
  void (*push)(cudaStream_t on, std::function<void()> work) = nullptr;
  int handles = 0, descriptors = 0;  ///< that were made and not destroyed
  int asked = 0;                     ///< for algorithms
  int convolutions[3] = {};          ///< and gradients, by kind
  int algorithm = 0, math = 0;       ///< of the last one
  int no_handle = 0;                 ///< what a call for a handle answers; 0: it gets one
  int no_algorithm = 0;              ///< what a question for algorithms answers; 0: those below
  int no_convolution = 0;            ///< what convolutions answer
  std::vector<deft::ext::gpu::cuda::cudnn::recommendation> algorithms;
  std::vector<std::string> faults;  ///< mistakes of the caller
};

}  // namespace fake

/// Exported by the library.
extern "C" fake::cudnn_state* fake_cudnn();
