// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/cuda/none.ipp: the GPUs of a program that was built without nvcc: there are
// none.
#pragma once
#include <deft/execute/gpu/devices.hpp>

namespace deft::gpu::cuda {

std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name&, bool, double) {
  return {};
}

}  // namespace deft::gpu::cuda
