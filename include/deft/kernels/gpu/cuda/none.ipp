// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/none.ipp: the GPUs of a program whose library was built without nvcc: there
// are none.
#pragma once
#include <deft/core/error.hpp>
#include <deft/kernels/gpu/cuda/stream.hpp>
#include <deft/kernels/gpu/devices.hpp>

namespace deft::ext::gpu::cuda {

std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name&, bool, double) {
  return {};
}

/// What .cu files of the program are linked to; without devices it is never called.
void stream::start(const void*, std::int64_t, unsigned, void**, std::span<const int>) {
  fail(errc::internal, "a CUDA kernel was started, but the library was built without CUDA");
}

}  // namespace deft::ext::gpu::cuda
