// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/index.ipp: what looks elements up or finds their places: gather, one_hot,
// argmax, argmin, first_max, first_min.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/cpu/indices.hpp>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/kernels/spec/index.hpp>

namespace deft::ext::cpu {
namespace {

template <class Index>
class kernel_of<spec::gather, Index> final : public spec::gather {
  void ready() override {
    gather::ready();
    cost_ = 20 + static_cast<double>(count_) * (4 + static_cast<double>(bytes_) / 15);
  }
  void run(const kernel_call& c) override {
    const char* from = static_cast<const char*>(c.in[0]);
    const Index* index = static_cast<const Index*>(c.in[1]);
    char* to = static_cast<char*>(c.out[0]);
    const std::int64_t rows = rows_, bytes = bytes_, count = count_;
    if (const std::size_t size = size_of_dtype(type()); bytes == static_cast<std::int64_t>(size))
      return visit_size(size, [&]<class Unit>() { run_elements<Unit>(c, index); });
    each_row(count, bytes, cost_, [=](std::int64_t i) {
      check_index(operation::name, index[i], rows);
      if (const auto j = i + rows_ahead; j < count && index[j] >= 0 && index[j] < rows)
        prefetch_row(from + index[j] * bytes, bytes);
      if (bytes)
        std::memcpy(to + i * bytes, from + index[i] * bytes, static_cast<std::size_t>(bytes));
    });
  }
  /// Of rows of one element each.
  template <class Unit>
  void run_elements(const kernel_call& c, const Index* index) const {
    const Unit* from = static_cast<const Unit*>(c.in[0]);
    Unit* to = static_cast<Unit*>(c.out[0]);
    const std::int64_t rows = rows_;
    each_row(count_, std::int64_t{sizeof(Unit)}, cost_, [=](std::int64_t i) {
      check_index(operation::name, index[i], rows);
      to[i] = from[index[i]];
    });
  }
};

template <class T, class Index>
class kernel_of<spec::one_hot, T, Index> final : public spec::one_hot {
  void ready() override { cost_ = 20 + static_cast<double>(out().elements()) * sizeof(T) / 20; }
  void run(const kernel_call& c) override {
    const Index* index = static_cast<const Index*>(c.in[0]);
    T* to = static_cast<T*>(c.out[0]);
    const std::int64_t rows = in(0).elements(), depth = op_.depth;
    std::fill(to, to + rows * depth, T(0));
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto i = static_cast<std::int64_t>(index[r]);
      if (i >= 0 && i < depth) to[r * depth + i] = T(1);
    }
  }
};

/// Whether `x` takes the place of `best`: the first NaN, else the first of those that How, largest
/// or smallest, prefers.
template <class How, class T>
DEFT_ALWAYS_INLINE bool beats(T x, T best) {
  const bool better = std::is_same_v<How, largest> ? x > best : x < best;
  if constexpr (is_floating_type<T>)
    return better || (x != x && best == best);
  else
    return better;
}

/// The first places of the largest, or smallest, elements of rows.
template <class How, class T>
struct first_places {
  using engine = fold<T, How>;
  static constexpr int L = engine::L;
  static constexpr bool by_lanes = engine::folds_together;
  /// A lane's index, within a block.
  using lane_index = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  using indices = pack<lane_index, L>;

  static void rows(const T* x, std::int64_t rows, std::int64_t n, std::int64_t* to) {
    std::int64_t r = 0;
    if constexpr (by_lanes)
      if (n > thresholds::compared_one_by_one && n < engine::W)
        for (; r + L <= rows; r += L) {
          T best[L];
          engine::rows(x + r * n, L, n, best);
          indices first[L];
          for (int k = 0; k < L; ++k) first[k] = lanes_with(x + (r + k) * n, n, best[k]);
          lane_index places[L];
          store(places, fold<lane_index, smallest>::across_each(first));
          std::copy(places, places + L, to + r);
        }
    for (; r < rows; ++r) to[r] = row(x + r * n, n);
  }

 private:
  static std::int64_t row(const T* x, std::int64_t n) {
    if (n <= thresholds::compared_alone) {  // without a branch: which one it is cannot be foreseen
      T best = x[0];
      std::int64_t at = 0;
      for (std::int64_t i = 1; i < n; ++i) {
        const bool better = beats<How>(x[i], best);
        best = better ? x[i] : best;
        at = better ? i : at;
      }
      return at;
    }
    // Its block first, which is still in cache.
    constexpr std::int64_t block = thresholds::searched_block;
    T best = engine::row(x, std::min(n, block));
    std::int64_t at = 0;
    for (std::int64_t i = block; i < n; i += block)
      if (const T b = engine::row(x + i, std::min(n - i, block)); beats<How>(b, best))
        best = b, at = i;
    x += at, n = std::min(n - at, block);
    if constexpr (by_lanes) {
      return at + fold<lane_index, smallest>::across(lanes_with(x, n, best));
    } else {
      std::int64_t i = 0;
      while (i + 1 < n && !is_at(x[i], best)) ++i;
      return at + i;
    }
  }
  /// In each lane the first index, of those that fall to it, of an element that is `best`.
  static DEFT_ALWAYS_INLINE indices lanes_with(const T* x, std::int64_t n, T best) {
    const auto most = broadcast<T, L>(best);
    indices at = broadcast<lane_index, L>(greatest_of<lane_index>);
    indices now = lane_numbers<lane_index, L>();
    const auto take = [&](const pack<T, L>& v) DEFT_INLINED {
      at = num::minimum(at, num::select(is_at(v, most), now, at));
      now = now + L;
    };
    std::int64_t i = 0;
    for (; i + L <= n; i += L) take(load<T, L>(x + i));
    // What stands in the lanes beyond comes after an element that is `best`.
    if (i < n) take(load_some<L>(x + i, n - i, best));
    return at;
  }
  /// Where one element is NaN, so is `best`.
  template <class V>
  static DEFT_ALWAYS_INLINE auto is_at(const V& x, const V& best) {
    if constexpr (is_floating_type<T>)
      return x == best || x != x;
    else
      return x == best;
  }
};

template <class Op, class How, class T>
class kernel_of<spec::first_place<Op, How>, T> final : public spec::first_place<Op, How> {
  void ready() override {
    spec::first_place<Op, How>::ready();
    const dims& x = this->in(0);
    const int axis = static_cast<int>(this->op_.axis);
    outer_ = inner_ = 1;
    for (int i = 0; i < x.rank(); ++i)
      if (i != axis) (i < axis ? outer_ : inner_) *= x[i];
    n_ = x[axis];
    this->cost_ = 20 + static_cast<double>(x.elements()) * (inner_ == 1 ? 0.1 : 0.6);
  }
  void run(const kernel_call& c) override {
    const T* x = static_cast<const T*>(c.in[0]);
    auto* to = static_cast<std::int64_t*>(c.out[0]);
    if (n_ * inner_ == 0) return;
    const std::int64_t some = std::max<std::int64_t>(
        1, thresholds::indexed_bytes / static_cast<std::int64_t>(sizeof(T)) / (n_ * inner_));
    parallel_chunks((outer_ + some - 1) / some, this->cost_, [&](std::int64_t p) {
      const std::int64_t end = std::min(outer_, (p + 1) * some);
      if (inner_ == 1)
        return first_places<How, T>::rows(x + p * some * n_, end - p * some, n_, to + p * some);
      for (std::int64_t o = p * some; o < end; ++o) unit(x + o * n_ * inner_, to + o * inner_);
    });
  }

  void unit(const T* x, std::int64_t* to) const {
    auto* best = static_cast<T*>(thread_scratch(static_cast<std::size_t>(inner_) * sizeof(T)));
    std::copy(x, x + inner_, best);
    std::fill(to, to + inner_, 0);
    for (std::int64_t i = 1; i < n_; ++i)
      for (std::int64_t j = 0; j < inner_; ++j)
        if (const T v = x[i * inner_ + j]; beats<How>(v, best[j])) best[j] = v, to[j] = i;
  }

  std::int64_t outer_ = 1, n_ = 1, inner_ = 1;
};

template <class Op, class How, class T>
class kernel_of<spec::first_mark<Op, How>, T> final : public spec::first_mark<Op, How> {
  void ready() override { this->cost_ = 20 + 2 * static_cast<double>(this->in(0).elements()); }
  void run(const kernel_call& c) override {
    const T* x = static_cast<const T*>(c.in[0]);
    auto* to = static_cast<std::uint8_t*>(c.out[0]);
    const dims &shape = this->in(0), &axes = this->op_.axes;
    const std::int64_t elements = shape.elements();
    if (elements == 0) return;
    std::memset(to, 0, static_cast<std::size_t>(elements));
    // For each place of the result of max or min, where its element is so far.
    std::int64_t strides[max_rank] = {}, results = 1;
    for (int d = shape.rank(); d-- > 0;)
      if (!axes.contains(d)) strides[d] = results, results *= shape[d];
    auto* best = static_cast<std::int64_t*>(
        thread_scratch(static_cast<std::size_t>(results) * sizeof(std::int64_t)));
    std::fill(best, best + results, -1);
    std::int64_t index[max_rank] = {}, at = 0;
    for (std::int64_t i = 0; i < elements; ++i) {
      auto& b = best[at];
      if (b < 0 || beats<How>(x[i], x[b])) b = i;
      for (int d = shape.rank(); d-- > 0;) {
        at += strides[d];
        if (++index[d] < shape[d]) break;
        at -= strides[d] * shape[d];
        index[d] = 0;
      }
    }
    for (std::int64_t r = 0; r < results; ++r) to[best[r]] = 1;
  }
};

}  // namespace
}  // namespace deft::ext::cpu
