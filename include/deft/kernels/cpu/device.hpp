// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/device.hpp: the processor as a device.
#pragma once
#include <deft/device/kind.hpp>
#include <deft/kernels/device.hpp>

namespace deft::ext {

/// The processor: the host of every task.
extern const device_kind cpu_kind;

/// `number` is the device's index: "/job:…/cpu:1". All processors' devices share the host's memory.
std::unique_ptr<device_runtime> make_cpu_device(const device_name& task, int number);

/// The processor's line for an operation; nullptr if there is none.
const kernel_entry* find_cpu_kernel(std::string_view op);
/// Adds kernels of the program's own to the processor's table. The table must live as long as the
/// process; what is added after the first device was made is not found.
void register_cpu_kernels(kernel_table table);
/// All tables of the processor.
std::span<const kernel_table> cpu_kernel_tables();

}  // namespace deft::ext
