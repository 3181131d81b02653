// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/cuda/memory.ipp: the memory of a GPU, allocated and freed in the order of its
// compute stream.
#pragma once
#include <deft/execute/gpu/cuda/queues.ipp>

namespace deft::gpu::cuda {
namespace {

/// The runtime's pool keeps what is freed, and gives it out again to what is queued later. Blocks
/// keep it: another GPU may hold the last one.
class device_memory final : public memory, public std::enable_shared_from_this<device_memory> {
 public:
  explicit device_memory(std::shared_ptr<queues> q) : queues_(std::move(q)) {}

  block* allocate(std::size_t bytes) override {
    bytes = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    auto b = std::make_unique<own_block>();
    queues_->use();
    cudaError_t e = take(&b->data, bytes);
    if (e == cudaErrorMemoryAllocation) {
      // What the pool keeps in pieces, or still waits for.
      queues_->drop_kept();
      cudaStreamSynchronize(queues_->compute());
      if (queues_->pool()) cudaMemPoolTrimTo(queues_->pool(), 0);
      e = take(&b->data, bytes);
    }
    if (e == cudaErrorMemoryAllocation) out_of_memory(bytes);
    check(e, "to allocate memory");
    b->capacity = bytes;
    b->home = this;
    b->keeps = shared_from_this();
    used_ += bytes;
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

  cudaError_t take(void** p, std::size_t bytes) {
    const cudaError_t e =
        queues_->pool() ? cudaMallocFromPoolAsync(p, bytes, queues_->pool(), queues_->compute())
                        : cudaMalloc(p, bytes);
    if (e != cudaSuccess) cudaGetLastError();
    return e;
  }
  [[noreturn]] void out_of_memory(std::size_t bytes) {
    std::size_t free = 0, all = 0;
    cudaMemGetInfo(&free, &all);
    fail(errc::resource_exhausted, "GPU ", queues_->number(), " cannot allocate ", bytes,
         " bytes: tensors have ", used_.load(), " bytes there, and ", free, " of ", all,
         " are free");
  }

  const std::shared_ptr<queues> queues_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace
}  // namespace deft::gpu::cuda
