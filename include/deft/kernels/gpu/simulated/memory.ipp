// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/simulated/memory.ipp: tagged addresses.
#pragma once
#include <algorithm>
#include <deft/core/error.hpp>
#include <deft/kernels/gpu/devices.hpp>
#include <deft/kernels/gpu/simulated/memory.hpp>
#include <deft/kernels/gpu/simulated/queue.hpp>
#include <memory>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace deft::ext::gpu::simulated {
namespace {

constexpr std::uintptr_t foreign = std::uintptr_t{1} << 62;
constexpr int number_shift = 48;

thread_local int kernels_queueing = 0;

/// In memory of the host.
struct device_block final : block {
  buffer host;
};

#ifdef __SANITIZE_ADDRESS__
/// Blocks have room around them that nothing may touch, and are used again for the same size alone:
/// work that is queued may still use them as they were.
constexpr std::size_t red_zone = 256;
bool fits(std::size_t capacity, std::size_t bytes) {
  return capacity == std::max<std::size_t>(bytes, 1);
}
void fill(device_block& b, std::size_t bytes) {
  b.host = buffer::host(bytes + 2 * red_zone);
  char* const begin = static_cast<char*>(b.host.data());
  b.data = begin + red_zone;
  b.capacity = bytes;
  ASAN_POISON_MEMORY_REGION(begin, red_zone);
  ASAN_POISON_MEMORY_REGION(begin + red_zone + bytes, b.host.capacity() - red_zone - bytes);
}
#else
bool fits(std::size_t capacity, std::size_t bytes) {
  return capacity >= bytes && capacity <= 2 * bytes + 256;
}
void fill(device_block& b, std::size_t bytes) {
  b.host = buffer::host(bytes);
  b.data = b.host.data();
  b.capacity = b.host.capacity();
}
#endif
void give_back(block* b) noexcept { delete static_cast<device_block*>(b); }

}  // namespace

queueing::queueing() { ++kernels_queueing; }
queueing::~queueing() { --kernels_queueing; }
void not_while_queueing(const char* what) {
  if (kernels_queueing) fail(errc::internal, "a kernel ", what, " while it queues its run");
}

void* tagged_memory::tagged(void* p) const {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(p) + foreign +
                                 (number_ << number_shift));
}
void* tagged_memory::real(const void* p) const {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  if (!p) return nullptr;
  if (at >> number_shift != (foreign >> number_shift) + number_)
    fail(errc::internal, "simulated GPU ", number_, " was given an address of ",
         at & foreign ? "another GPU" : "the host");
  return reinterpret_cast<void*>(at - foreign - (number_ << number_shift));
}

block* tagged_memory::allocate(std::size_t bytes) {
  not_while_queueing("allocates");
  std::lock_guard lock(guard_);
  if (bytes > limit_ || used_ > limit_ - bytes) out_of_memory(where_, bytes, used_, limit_);
  for (std::size_t i = free_.size(); i-- > 0;)
    if (fits(free_[i]->capacity, bytes)) {
      block* b = free_[i];
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
      kept_ -= b->capacity;
      used_ += b->capacity;
      b->references = 1;
      return b;
    }
  ++simulated_gpus().allocations;
  auto b = std::make_unique<device_block>();
  fill(*b, std::max<std::size_t>(bytes, 1));
  used_ += b->capacity;
  b->data = tagged(b->data);
  b->home = this;
  return b.release();
}
void tagged_memory::release(block* b) noexcept {
  std::lock_guard lock(guard_);
  free_.push_back(b);
  used_ -= b->capacity;
  kept_ += b->capacity;
  while (kept_ > most_kept) {
    block* const old = free_.front();
    kept_ -= old->capacity;
    compute_.push([old] { give_back(old); });
    free_.pop_front();
  }
}
tagged_memory::~tagged_memory() {
  for (block* b : free_) give_back(b);
}

}  // namespace deft::ext::gpu::simulated
