// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/memory.ipp: the memory of a GPU, allocated and freed in the order of its
// compute stream.
#pragma once
#include <deft/kernels/gpu/cuda/queues.ipp>
#include <deft/kernels/gpu/devices.hpp>

namespace deft::ext::gpu::cuda {
namespace {

/// The runtime's pool keeps what is freed, and gives it out again to what is queued later. Blocks
/// keep it: another GPU may hold the last one.
class device_memory final : public memory, public std::enable_shared_from_this<device_memory> {
 public:
  /// `limit`: bytes that tensors may have.
  device_memory(std::shared_ptr<queues> q, const device_info& where, std::size_t limit)
      : queues_(std::move(q)), where_(where), limit_(limit) {}

  block* allocate(std::size_t bytes) override {
    bytes = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    auto b = std::make_unique<own_block>();
    b->data = queues_->attempt([&] { return taken(bytes); });
    if (!b->data) queues_->log().refuse();
    b->capacity = bytes;
    b->home = this;
    b->keeps = shared_from_this();
    return b.release();
  }
  void release(block* b) noexcept override {
    used_ -= b->capacity;
    try {
      queues_->use();
      queues_->pool() ? cudaFreeAsync(b->data, queues_->compute()) : cudaFree(b->data);
    } catch (const error&) {  // nothing is left of a GPU that has stopped
    }
    delete static_cast<own_block*>(b);
  }
  bool on_host() const override { return false; }

 private:
  struct own_block : block {
    std::shared_ptr<device_memory> keeps;
  };
  static constexpr std::size_t alignment = 256;

  void* taken(std::size_t bytes) {
    void* p = nullptr;
    cudaError_t e = take(&p, bytes);
    if (e == cudaErrorMemoryAllocation) {
      // What copies still hold, and what the pool keeps in pieces, or still waits for.
      cudaStreamSynchronize(queues_->compute());
      queues_->drop_kept();
      if (queues_->pool()) cudaMemPoolTrimTo(queues_->pool(), 0);
      e = take(&p, bytes);
    }
    if (e == cudaErrorMemoryAllocation) {
      std::size_t free = 0, all = 0;
      cudaMemGetInfo(&free, &all);
      out_of_memory(where_, bytes, used_, std::min(limit_, used_ + free));
    }
    check(e, "to allocate memory");
    return p;
  }
  /// Counts what it takes.
  cudaError_t take(void** p, std::size_t bytes) {
    if (used_.fetch_add(bytes) + bytes > limit_) {
      used_ -= bytes;
      return cudaErrorMemoryAllocation;
    }
    const cudaError_t e =
        queues_->pool() ? cudaMallocFromPoolAsync(p, bytes, queues_->pool(), queues_->compute())
                        : cudaMalloc(p, bytes);
    if (e == cudaSuccess) return e;
    used_ -= bytes;
    cudaGetLastError();
    return e;
  }

  const std::shared_ptr<queues> queues_;
  const device_info where_;
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace
}  // namespace deft::ext::gpu::cuda
