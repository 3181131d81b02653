// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/copy.ipp: copies that an update makes.
#pragma once
#include <deft/kernels/gpu/cuda/launch.hpp>
#include <deft/kernels/gpu/cuda/tables.hpp>
#include <deft/kernels/gpu/groups.hpp>

namespace deft::ext::gpu::cuda {

void copy_unless_failed(stream& s, void* to, const void* from, std::size_t bytes) {
  queue_copy(s, to, from, bytes);
}

}  // namespace deft::ext::gpu::cuda
