// SPDX-License-Identifier: Apache-2.0
// tests/cuda/fake_runtime.hpp: CUDA's runtime as far as deft calls it, without a GPU: the host's
// memory, and a thread for each stream. Of compiled kernels it runs only copies; what those of
// programs do is the test's.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace fake {

/// A launch of a kernel of loaded code.
struct program_launch {
  std::string kernel;
  unsigned blocks, threads;
  const void* argument;  ///< until the launch is queued
};

/// What tests see of the runtime, and do to it.
struct state {
  int gpus = 2;
  std::set<int> contexts;            ///< GPUs that have one
  std::size_t free = 1 << 30;        ///< bytes of each GPU, not counted down
  std::size_t in_pools = 0;          ///< bytes allocated there
  int waits = 0;                     ///< of the host, in calls that return when a GPU is done
  bool captures = true;              ///< streams into graphs
  int replays = 0;                   ///< starts of graphs
  int graphs = 0;                    ///< that there are
  int pinnings = 0;                  ///< of the host's memory where it is, so far
  std::set<void*> pinned;            ///< what is so
  cudaError_t broken = cudaSuccess;  ///< what every call answers from now on
  bool capturing = false;            ///< every stream, into a graph
  /// Starts a kernel of that mangled name, other than a copy, if it knows it; null: it knows none.
  bool (*kernel)(const std::string& name, void** arguments, cudaStream_t on) = nullptr;
  void (*allocating)() = nullptr;      ///< called before memory of a GPU is allocated
  cudaError_t starting = cudaSuccess;  ///< what the start of a compiled kernel answers
  int major = 9, minor = 0;            ///< of the compute capability
  cudaError_t loading = cudaSuccess;   ///< what the loading of code answers
  int loaded = 0, unloaded = 0;        ///< pieces of code
  /// Makes the work of a launch.
  std::function<std::function<void()>(const program_launch&)> program;
};
state& runtime();

/// No stream goes on while they are held, and no code is loaded.
void hold();
void go_on();
/// Every call fails from now on.
void stop(cudaError_t why);
/// Queues work of a kernel.
void push(cudaStream_t on, std::function<void()> work);

}  // namespace fake
