// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/scatter.ipp: what adds or writes rows by their indices, in a fixed order:
// scatter_add, sum_rows, scatter_sub, scatter_update,
// scatter_max, scatter, scatter_maximum.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/cpu/equal_rows.hpp>
#include <deft/kernels/cpu/indices.hpp>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/kernels/spec/scatter.hpp>
#include <vector>

namespace deft::ext::cpu {
namespace {

/// Differences, where integers wrap.
struct minus {
  template <class V>
  static DEFT_ALWAYS_INLINE V combine(const V& a, const V& b) {
    if constexpr (element<V>)
      return (num::lane<V>(a) - b).v;
    else
      return a - b;
  }
};

/// Rows of one index in their order, in parts where they are many: the same sums every time.
template <class T, class Index>
class kernel_of<spec::scatter_add, T, Index> final : public spec::scatter_add {
  void ready() override {
    scatter::ready();
    cost_ = 20 + static_cast<double>(count_ * (n_ + 4)) * sizeof(T) / 20 +
            static_cast<double>(rows_ * n_) * sizeof(T) / 40;
    uses_.resize(count_ > thresholds::rows_together ? static_cast<std::size_t>(rows_) : 0);
  }
  void run(const kernel_call& c) override {
    const T* from = static_cast<const T*>(c.in[0]);
    const Index* index = static_cast<const Index*>(c.in[1]);
    T* to = static_cast<T*>(c.out[0]);
    std::fill(to, to + rows_ * n_, T(0));
    for (std::int64_t i = 0; i < count_; ++i) check_index(operation::name, index[i], rows_);
    if (is_used_often(index)) return add_parts(from, index, to);
    for (std::int64_t i = 0; i < count_; ++i)
      fold<T, plus>::into(to + index[i] * n_, from + i * n_, n_);
  }

  /// Whether a row is the sum of more than a part.
  bool is_used_often(const Index* index) {
    if (uses_.empty()) return false;
    std::ranges::fill(uses_, 0);
    bool often = false;
    for (std::int64_t i = 0; i < count_; ++i)
      often |= ++uses_[static_cast<std::size_t>(index[i])] > thresholds::rows_together;
    return often;
  }
  void add_parts(const T* from, const Index* index, T* to) {
    equal_.prepare(count_, rows_);
    equal_.find(index, count_);
    const auto& firsts = equal_.firsts();
    each_row(static_cast<std::int64_t>(firsts.size()), n_ * static_cast<std::int64_t>(sizeof(T)),
             cost_, [&](std::int64_t k) {
               thread_local std::vector<T> sum;
               sum.resize(static_cast<std::size_t>(n_));
               const std::int64_t first = firsts[static_cast<std::size_t>(k)];
               equal_rows<T, Index>{equal_, from, n_}.sum_from(first, sum.data());
               fold<T, plus>::into(to + index[first] * n_, sum.data(), n_);
             });
  }

  std::vector<std::uint32_t> uses_;  ///< of each row, where some may have more than a part
  equal_indices<Index> equal_;
};

template <class T, class Index>
class kernel_of<spec::sum_rows, T, Index> final : public spec::sum_rows {
  void ready() override {
    sum_rows::ready();
    cost_ = 20 + static_cast<double>(count_ * (n_ + 10)) * sizeof(T) / 15;
    equal_.prepare(count_, count_);
  }
  void run(const kernel_call& c) override {
    const T* from = static_cast<const T*>(c.in[0]);
    T* to = static_cast<T*>(c.out[0]);
    equal_.find(static_cast<const Index*>(c.in[1]), count_);
    const auto& firsts = equal_.firsts();
    const std::int64_t bytes = n_ * static_cast<std::int64_t>(sizeof(T));
    each_row(static_cast<std::int64_t>(firsts.size()), bytes, cost_, [&](std::int64_t k) {
      const std::int64_t first = firsts[static_cast<std::size_t>(k)];
      T* const sum = to + first * n_;
      equal_rows<T, Index>{equal_, from, n_}.sum_from(first, sum);
      for (std::int64_t i = equal_.next(first); i >= 0; i = equal_.next(i))
        if (op_.repeat)
          std::copy_n(sum, n_, to + i * n_);
        else
          std::fill_n(to + i * n_, n_, T(0));
    });
  }

  equal_indices<Index> equal_;
};

template <class Op, class T, class Index>
class kernel_of<spec::row_update<Op>, T, Index> final : public spec::row_update<Op> {
  void ready() override {
    spec::row_update<Op>::ready();
    this->cost_ = 20 + static_cast<double>(this->count_ * (this->n_ + 10)) * sizeof(T) / 10;
    equal_.prepare(this->count_, this->rows_);
  }
  void run(const kernel_call& c) override {
    const T* from = static_cast<const T*>(c.in[1]);
    const Index* index = static_cast<const Index*>(c.in[2]);
    T* to = static_cast<T*>(c.out[0]);
    const std::int64_t rows = this->rows_, n = this->n_, count = this->count_;
    for (std::int64_t i = 0; i < count; ++i) check_index(Op::name, index[i], rows);
    equal_.find(index, count);
    const std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(T));
    if (to != c.in[0]) std::memcpy(to, c.in[0], static_cast<std::size_t>(rows * bytes));
    const auto& firsts = equal_.firsts();
    each_row(static_cast<std::int64_t>(firsts.size()), bytes, this->cost_, [&](std::int64_t k) {
      const auto row = [&](std::int64_t first) {
        return to + static_cast<std::int64_t>(index[first]) * n;
      };
      if (const auto soon = static_cast<std::size_t>(k + rows_ahead); soon < firsts.size())
        prefetch_row(row(firsts[soon]), bytes);
      const std::int64_t first = firsts[static_cast<std::size_t>(k)];
      if constexpr (spec::change_by<Op> == spec::row_change::subtracted)
        subtract(from, first, row(first));
      else if constexpr (spec::change_by<Op> == spec::row_change::maximum)
        for (std::int64_t i = first; i >= 0; i = equal_.next(i))
          fold<T, largest>::into(row(first), from + i * n, n);
      else
        std::copy_n(from + last_of(first) * n, n, row(first));
    });
  }

  /// The rows that have the index at `first`, added up.
  void subtract(const T* from, std::int64_t first, T* row) const {
    const std::int64_t n = this->n_;
    const T* rows = from + first * n;
    thread_local std::vector<T> sum;
    if (equal_.next(first) >= 0) {
      sum.resize(static_cast<std::size_t>(n));
      equal_rows<T, Index>{equal_, from, n}.sum_from(first, sum.data());
      rows = sum.data();
    }
    fold<T, minus>::into(row, rows, n);
  }
  std::int64_t last_of(std::int64_t i) const {
    while (equal_.next(i) >= 0) i = equal_.next(i);
    return i;
  }

  equal_indices<Index> equal_;
};

}  // namespace
}  // namespace deft::ext::cpu
