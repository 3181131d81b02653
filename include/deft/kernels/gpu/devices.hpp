// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/devices.hpp: the GPUs of a task.
#pragma once
#include <deft/kernels/device.hpp>
#include <optional>

namespace deft::ext::gpu {

/// As session_options has them. What is not set, the environment says: DEFT_SIMULATED_GPUS,
/// DEFT_ALLOW_TF32, 0 or 1, and DEFT_GPU_MEMORY_LIMIT.
struct options {
  std::optional<int> simulated = {};
  std::optional<bool> allow_tf32 = {};
  std::optional<double> memory_limit = {};
};
/// The options in question of a session or a server.
template <class Options>
options options_of(const Options& o) {
  return {o.simulated_gpus, o.allow_tf32, o.gpu_memory_limit};
}

/// /gpu:0 and so on, of the task whose name is given without type and index: simulated ones where
/// that is asked for, else those that the machine has. Throws invalid_argument if an option or a
/// variable of the environment is out of range, and unimplemented if simulated GPUs are asked for
/// and this program was built without Thrust.
std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task,
                                                          const options& o = {});

/// Bytes that a limit lets tensors have of `all`: a part of them, up to 1, or so many.
std::size_t limited_memory(double limit, std::size_t all);
/// Throws resource_exhausted: a device of that limit, in bytes, cannot give so many.
[[noreturn]] void out_of_memory(const device_info& where, std::size_t asked, std::size_t used,
                                std::size_t limit);

namespace cuda {
/// Those that CUDA's driver shows, as CUDA_VISIBLE_DEVICES says; none without a driver, or in a
/// program that was built without nvcc. Makes no context: the first use of a device does.
std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task,
                                                          bool allow_tf32 = false,
                                                          double memory_limit = 1);
}  // namespace cuda

/// GPUs that the processor simulates: deft::simulated_gpus, which not every program links.
namespace simulated {
/// A part of their memory is one of the machine's.
std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task, int count,
                                                          double memory_limit = 1);
/// make_devices, where it is linked.
using factory = std::vector<std::unique_ptr<device_runtime>> (*)(const device_name&, int, double);
factory& device_factory();
}  // namespace simulated

}  // namespace deft::ext::gpu
