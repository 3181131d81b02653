// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/cuda_sort.ipp: sorting, by CUB. Compiled on its own, by nvcc.
#pragma once
// Whatever else a program does with CUB: this never meets symbols of another version.
#ifndef THRUST_CUB_WRAPPED_NAMESPACE
#define THRUST_CUB_WRAPPED_NAMESPACE deft_thrust
#endif
#include <cub/device/device_radix_sort.cuh>
#include <deft/kernels/gpu/cuda/stream.hpp>

namespace deft::ext::gpu::cuda {

void stream::sort_by_key(const std::uint32_t* keys, std::uint32_t* sorted_keys,
                         const std::uint32_t* values, std::uint32_t* sorted_values, std::int64_t n,
                         int bits, void* room) {
  std::size_t bytes = 0;
  auto sort = [&](void* at) {
    check(deft_thrust::cub::DeviceRadixSort::SortPairs(at, bytes, keys, sorted_keys, values,
                                                       sorted_values, static_cast<std::uint32_t>(n),
                                                       0, bits, on_),
          "to sort");
  };
  sort(nullptr);  // asks for bytes
  if (bytes > sort_room(n))
    fail(errc::internal, "a sort of ", n, " keys needs ", bytes, " bytes, and has ", sort_room(n));
  sort(room);
}

}  // namespace deft::ext::gpu::cuda
