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
    each_row(count, bytes, cost_, [=](std::int64_t i) {
      check_index(operation::name, index[i], rows);
      if (const auto j = i + rows_ahead; j < count && index[j] >= 0 && index[j] < rows)
        prefetch_row(from + index[j] * bytes, bytes);
      if (bytes)
        std::memcpy(to + i * bytes, from + index[i] * bytes, static_cast<std::size_t>(bytes));
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

/// The first place of the largest, or smallest, of n elements in a line.
template <class How, class T>
std::int64_t place_in_row(const T* x, std::int64_t n) {
  if (n <= 32) {  // without a branch: which one it is cannot be foreseen
    T best = x[0];
    std::int64_t at = 0;
    for (std::int64_t i = 1; i < n; ++i) {
      const bool better = beats<How>(x[i], best);
      best = better ? x[i] : best;
      at = better ? i : at;
    }
    return at;
  }
  const T most = fold<T, How>::row(x, n);
  for (std::int64_t i = 0; i < n; ++i)
    if (x[i] == most || (most != most && x[i] != x[i])) return i;
  return 0;
}

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
      for (std::int64_t o = p * some; o < std::min(outer_, (p + 1) * some); ++o)
        unit(x + o * n_ * inner_, to + o * inner_);
    });
  }

  void unit(const T* x, std::int64_t* to) const {
    if (inner_ == 1) {
      *to = place_in_row<How>(x, n_);
      return;
    }
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
