// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/devices.hpp: the GPUs of a task.
#pragma once
#include <deft/device/kind.hpp>
#include <deft/kernels/device.hpp>

namespace deft::ext::gpu {

/// Bytes that a limit lets tensors have of `all`: a part of them, up to 1, or so many.
std::size_t limited_memory(double limit, std::size_t all);
/// Throws resource_exhausted: a device of that limit, in bytes, cannot give so many.
[[noreturn]] void out_of_memory(const device_info& where, std::size_t asked, std::size_t used,
                                std::size_t limit);

namespace cuda {
/// The machine's, unless simulated ones are asked for.
extern const device_kind kind;
/// Those that CUDA's driver shows, as CUDA_VISIBLE_DEVICES says; none without a driver, or in a
/// program that was built without nvcc. Makes no context: the first use of a device does.
std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task,
                                                          bool allow_tf32 = false,
                                                          double memory_limit = 1);
}  // namespace cuda

/// GPUs that the processor simulates: deft::simulated_gpus, which not every program links.
namespace simulated {
/// As many as are asked for. Throws unimplemented where they are not linked.
extern const device_kind kind;
/// A part of their memory is one of the machine's.
std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task, int count,
                                                          double memory_limit = 1);
/// make_devices, where it is linked.
using factory = std::vector<std::unique_ptr<device_runtime>> (*)(const device_name&, int, double);
factory& device_factory();
}  // namespace simulated

}  // namespace deft::ext::gpu
