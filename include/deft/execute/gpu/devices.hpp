// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/devices.hpp: the GPUs of a task.
#pragma once
#include <deft/execute/device.hpp>
#include <optional>

namespace deft::gpu {

/// /gpu:0 and so on, of the task whose name is given without type and index: so many simulated
/// ones, or where that is not set, as many as the environment's DEFT_SIMULATED_GPUS says; else
/// those that the machine has. `allow_tf32`: as session_options has it. Throws invalid_argument if
/// an option or variable of the environment is out of range, and unimplemented if simulated GPUs
/// are asked for and this program was built without Thrust.
std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task,
                                                          std::optional<int> simulated = {},
                                                          std::optional<bool> allow_tf32 = {});

namespace cuda {
/// Those that CUDA's driver shows, as CUDA_VISIBLE_DEVICES says; none without a driver, or in a
/// program that was built without nvcc. Makes no context: the first use of a device does.
std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task,
                                                          bool allow_tf32 = false);
}  // namespace cuda

namespace simulated {
/// Throws unimplemented if this program was built without Thrust.
std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task, int count);
}  // namespace simulated

}  // namespace deft::gpu
