// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/equal_rows.hpp: which rows have the same index, and their sums.
#pragma once
#include <algorithm>
#include <bit>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/plan/thresholds.hpp>
#include <vector>

namespace deft::ext::cpu {
namespace {

/// Which of a list of indices are equal: a hash table of positions, of at most `distinct` values.
template <class Index>
class equal_indices {
 public:
  void prepare(std::int64_t count, std::int64_t distinct) {
    next_.resize(at(count));
    firsts_.reserve(at(count));
    const std::size_t slots = std::bit_ceil(2 * at(std::min(count, distinct)) + 2);
    slots_.resize(slots);
    shift_ = 64 - std::countr_zero(slots);
  }
  void find(const Index* index, std::int64_t count) {
    firsts_.clear();
    std::ranges::fill(slots_, -1);
    for (std::int64_t i = 0; i < count; ++i) {
      std::size_t s = (static_cast<std::uint64_t>(index[i]) * 0x9E3779B97F4A7C15u) >> shift_;
      while (slots_[s] >= 0 && index[slots_[s]] != index[i]) s = (s + 1) & (slots_.size() - 1);
      if (slots_[s] >= 0)
        next_[at(slots_[s])] = i;
      else
        firsts_.push_back(i);
      slots_[s] = i;
      next_[at(i)] = -1;
    }
  }
  /// The first positions of the indices, in their order.
  const std::vector<std::int64_t>& firsts() const { return firsts_; }
  std::int64_t count() const { return static_cast<std::int64_t>(next_.size()); }
  /// The next position of the same index; -1: none.
  std::int64_t next(std::int64_t i) const { return next_[at(i)]; }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::vector<std::int64_t> slots_;  ///< the last position of an index so far; -1: free
  std::vector<std::int64_t> next_, firsts_;
  int shift_ = 0;
};

/// Rows of n elements, those that have the same index in lists.
template <class T, class Index>
struct equal_rows {
  const equal_indices<Index>& equal;
  const T* from;
  std::int64_t n;

  /// The sum of row i and those behind it that have its index.
  void sum_from(std::int64_t i, T* to) const {
    int level = 0;
    for (std::int64_t part = thresholds::rows_together; part < equal.count();
         part *= thresholds::rows_together)
      ++level;
    thread_local std::vector<T> room;
    room.resize(static_cast<std::size_t>(level * n));
    add_part(i, level, to, room.data());
  }

 private:
  /// Of as many rows as a part of that level has. Returns the next one; -1: there is none.
  std::int64_t add_part(std::int64_t i, int level, T* to, T* room) const {
    if (level == 0) {
      std::copy_n(from + i * n, n, to);
      i = equal.next(i);
      for (std::int64_t k = 1; k < thresholds::rows_together && i >= 0; ++k, i = equal.next(i))
        fold<T, plus>::into(to, from + i * n, n);
      return i;
    }
    i = add_part(i, level - 1, to, room + n);
    for (std::int64_t k = 1; k < thresholds::rows_together && i >= 0; ++k) {
      i = add_part(i, level - 1, room, room + n);
      fold<T, plus>::into(to, room, n);
    }
    return i;
  }
};

}  // namespace
}  // namespace deft::ext::cpu
