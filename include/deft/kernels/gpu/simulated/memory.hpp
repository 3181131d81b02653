// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/simulated/memory.hpp: the memory of a simulated GPU, at addresses that the
// processor cannot follow.
#pragma once
#include <deft/core/buffer.hpp>
#include <deft/device/info.hpp>
#include <deque>
#include <mutex>

namespace deft::ext::gpu::simulated {

class queue;

/// Real addresses with the device's number and a bit added that makes them none of the machine's:
/// dereferencing one faults at once. Sums and alignment stay as they are. Blocks are used again
/// in the order of the compute stream, as those of a GPU's caching allocator are. AddressSanitizer
/// reports what is read or written in front of a block, and behind the bytes that were asked for.
class tagged_memory final : public memory {
 public:
  /// `number` < 2^12; `limit`: bytes that tensors may have.
  tagged_memory(int number, queue& compute, const device_info& where, std::size_t limit)
      : number_(number), compute_(compute), where_(where), limit_(limit) {}
  ~tagged_memory() override;

  block* allocate(std::size_t bytes) override;
  void release(block* b) noexcept override;
  bool on_host() const override { return false; }

  /// What is there. Throws internal for an address that is not of this device.
  void* real(const void* p) const;

 private:
  /// Bytes that wait to be used again, at most.
  static constexpr std::size_t most_kept = std::size_t{256} << 20;

  void* tagged(void* p) const;

  const std::uintptr_t number_;
  queue& compute_;
  const device_info where_;
  const std::size_t limit_;
  std::size_t used_ = 0;  ///< bytes of blocks that are not free
  std::mutex guard_;
  std::deque<block*> free_;  ///< the oldest first
  std::size_t kept_ = 0;     ///< bytes
};

/// While a kernel queues its run on this thread: it may neither allocate nor wait.
class queueing {
 public:
  queueing();
  ~queueing();
  queueing(const queueing&) = delete;
};
/// Throws internal if a kernel does.
void not_while_queueing(const char* what);

}  // namespace deft::ext::gpu::simulated
