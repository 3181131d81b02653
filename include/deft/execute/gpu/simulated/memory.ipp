// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/simulated/memory.ipp: tagged addresses.
#pragma once
#include <deft/core/error.hpp>
#include <deft/execute/gpu/devices.hpp>
#include <deft/execute/gpu/simulated/memory.hpp>
#include <deft/execute/gpu/simulated/queue.hpp>

namespace deft::gpu::simulated {
namespace {

constexpr std::uintptr_t foreign = std::uintptr_t{1} << 62;
constexpr int number_shift = 48;

thread_local int kernels_queueing = 0;

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
    if (free_[i]->capacity >= bytes && free_[i]->capacity <= 2 * bytes + 256) {
      block* b = free_[i];
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
      kept_ -= b->capacity;
      used_ += b->capacity;
      b->references = 1;
      return b;
    }
  ++simulated_gpus().allocations;
  block* b = host_memory().allocate(std::max<std::size_t>(bytes, 1));
  used_ += b->capacity;
  b->data = tagged(b->data);
  b->home = this;
  return b;
}
void tagged_memory::release(block* b) noexcept {
  std::lock_guard lock(guard_);
  free_.push_back(b);
  used_ -= b->capacity;
  kept_ += b->capacity;
  while (kept_ > most_kept) {
    block* const old = free_.front();
    kept_ -= old->capacity;
    compute_.push([old, at = real(old->data)] { give_back(old, at); });
    free_.pop_front();
  }
}
tagged_memory::~tagged_memory() {
  for (block* b : free_) give_back(b, real(b->data));
}
void tagged_memory::give_back(block* b, void* at) noexcept {
  b->data = at;
  b->home = &host_memory();
  host_memory().release(b);
}

}  // namespace deft::gpu::simulated
