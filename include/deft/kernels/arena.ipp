// SPDX-License-Identifier: Apache-2.0
// deft/kernels/arena.ipp: size classes, four to each power of two.
#pragma once
#include <bit>
#include <deft/kernels/arena.hpp>

namespace deft::ext {

arena_pool::arena_pool(memory& space, std::size_t largest) : space_(space), largest_(largest) {}
arena_pool::~arena_pool() { trim(); }

/// Sizes are 2^e (1 + q / 4), from 256 bytes on.
std::size_t arena_pool::class_of(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 256) - 1;
  const auto e = static_cast<std::size_t>(std::bit_width(bytes)) - 1;
  const std::size_t q = bytes >> (e - 2) & 3;
  return 4 * e + q;
}
std::size_t arena_pool::bytes_of(std::size_t size_class) {
  const std::size_t e = size_class / 4, q = size_class % 4;
  return (std::size_t{5} + q) << (e - 2);
}

buffer arena_pool::take(std::size_t bytes) {
  if (bytes > largest_) return buffer(space_.allocate(bytes));
  const std::size_t c = class_of(bytes);
  if (block* b = top_[c].exchange(nullptr, std::memory_order_acquire)) return buffer(b);
  {
    std::lock_guard lock(guard_);
    for (std::size_t i = more_.size(); i-- > 0;)
      if (more_[i].first == c) {
        buffer b = std::move(more_[i].second);
        more_.erase(more_.begin() + static_cast<std::ptrdiff_t>(i));
        return b;
      }
  }
  return buffer(space_.allocate(bytes_of(c)));
}

void arena_pool::give(buffer block_of) noexcept {
  if (!block_of || block_of.capacity() > bytes_of(class_of(largest_))) return;
  // The class whose blocks are as large as this one: capacities may have been rounded up.
  std::size_t c = class_of(block_of.capacity() + 1) - 1;
  deft::ext::block* nobody = nullptr;
  deft::ext::block* b = block_of.release();
  if (top_[c].compare_exchange_strong(nobody, b, std::memory_order_release)) return;
  buffer kept(b);
  std::lock_guard lock(guard_);
  try {
    more_.emplace_back(c, std::move(kept));
  } catch (const std::bad_alloc&) {
    // It is not kept.
  }
}

void arena_pool::trim() noexcept {
  for (auto& t : top_) buffer(t.exchange(nullptr));
  std::lock_guard lock(guard_);
  more_.clear();
}

}  // namespace deft::ext
