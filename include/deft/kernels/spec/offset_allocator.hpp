// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/offset_allocator.hpp: which bytes of a block hold which of the values that live
// at different times.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deft/core/config.hpp>
#include <iterator>
#include <map>

namespace deft::ext {

/// Offsets of values in a block that is as long as they need: each is taken when the value begins
/// and given back when it is dead.
template <std::size_t Alignment = 64>
class offset_allocator {
 public:
  static constexpr std::size_t aligned(std::size_t bytes) {
    return (std::max<std::size_t>(bytes, 1) + Alignment - 1) / Alignment * Alignment;
  }
  std::size_t take(std::size_t bytes) {
    bytes = aligned(bytes);
    // The one given back last that fits best: its lines are in the cache.
    auto best = free_.end();
    for (auto f = free_.begin(); f != free_.end(); ++f)
      if (f->second >= bytes && (best == free_.end() || f->second < best->second)) best = f;
    if (best == free_.end()) {
      // The hole at the end may grow.
      std::size_t at = top_;
      if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == top_) {
        at = free_.rbegin()->first;
        free_.erase(at);
      }
      top_ = at + bytes;
      return at;
    }
    const auto [at, size] = *best;
    free_.erase(best);
    if (size > bytes) free_.emplace(at + bytes, size - bytes);
    return at;
  }
  void give(std::size_t at, std::size_t bytes) {
    bytes = aligned(bytes);
    auto next = free_.lower_bound(at);
    if (next != free_.end() && next->first == at + bytes) {
      bytes += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin())
      if (auto before = std::prev(next); before->first + before->second == at) {
        before->second += bytes;
        return;
      }
    free_.emplace(at, bytes);
  }
  /// Of the block.
  std::size_t size() const { return top_; }

 private:
  std::map<std::size_t, std::size_t> free_;  ///< offset, bytes
  std::size_t top_ = 0;
};

}  // namespace deft::ext
