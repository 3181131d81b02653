// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/kernel_base.ipp: a thread's scratch memory.
#pragma once
#include <deft/core/buffer.hpp>
#include <deft/kernels/cpu/kernel_base.hpp>

namespace deft::ext::cpu {

void* thread_scratch(std::size_t bytes) {
  thread_local buffer kept;
  if (kept.capacity() < bytes || !kept) {
    kept.reset();
    kept = buffer::host(bytes);
  }
  return kept.data();
}

}  // namespace deft::ext::cpu
