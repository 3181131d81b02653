// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/fold.hpp: rows and columns of a matrix folded into one: the loops of reductions.
// The order is that of a fixed tree, so that pieces may be folded on any thread.
#pragma once
#include <deft/execute/cpu/kernel_base.hpp>
#include <deft/execute/cpu/pack.hpp>

namespace deft::cpu {

/// What is folded with: sums, where integers wrap.
struct plus {
  template <class T>
  static constexpr T nothing() {
    return T(0);
  }
  template <class V>
  static DEFT_ALWAYS_INLINE V combine(const V& a, const V& b) {
    return num::add(a, b);
  }
};
/// The largest; NaN goes through.
struct largest {
  template <class T>
  static constexpr T nothing() {
    if constexpr (std::is_floating_point_v<T>)
      return -std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::min();
  }
  template <class V>
  static DEFT_ALWAYS_INLINE V combine(const V& a, const V& b) {
    return num::maximum(a, b);
  }
};

template <class T, class F>
struct fold {
  static constexpr int L = register_bytes / static_cast<int>(sizeof(T)), W = 4 * L;
  static constexpr std::int64_t leaf_elements = 64 * W;  ///< of a row, folded in a line
  static constexpr std::int64_t leaf_rows = 64;          ///< folded one after another

  /// Where a tree over n > unit elements parts: the left side is the largest power of two of units.
  static constexpr std::int64_t half(std::int64_t n, std::int64_t unit) {
    std::int64_t left = unit;
    while (left * 2 < n) left *= 2;
    return left;
  }

  /// n elements in a line.
  static T row(const T* p, std::int64_t n) {
    if (n <= leaf_elements) return leaf(p, static_cast<int>(n));
    const std::int64_t left = half(n, leaf_elements);
    return F::combine(row(p, left), row(p + left, n - left));
  }

  /// The same tree over what `row` gave for pieces of `leaf_elements` times a power of two.
  static T pieces(const T* p, std::int64_t n) {
    if (n == 1) return *p;
    const std::int64_t left = half(n, 1);
    return F::combine(pieces(p, left), pieces(p + left, n - left));
  }

  /// Columns of `rows` x n elements whose rows are `stride` apart, into `to`. `room` holds n
  /// elements for each level of the tree.
  static void columns(const T* p, std::int64_t stride, std::int64_t rows, std::int64_t n, T* to,
                      T* room) {
    if (rows <= leaf_rows) return leaf_columns(p, stride, rows, n, to);
    const std::int64_t left = half(rows, leaf_rows);
    columns(p, stride, left, n, to, room);
    columns(p + left * stride, stride, rows - left, n, room, room + n);
    into(to, room, n);
  }
  static std::int64_t levels(std::int64_t rows) {
    std::int64_t l = 1;
    for (; rows > leaf_rows; rows = (rows + 1) / 2) ++l;
    return l + 1;
  }

  /// to[i] combined with from[i].
  static void into(T* to, const T* from, std::int64_t n) {
    std::int64_t i = 0;
    for (; i + L <= n; i += L) store(to + i, F::combine(load<T, L>(to + i), load<T, L>(from + i)));
    for (; i < n; ++i) to[i] = F::combine(to[i], from[i]);
  }

  static T leaf(const T* p, int n) {
    T total = F::template nothing<T>();
    int i = 0;
    if (n >= W) {
      pack<T, W> sum = load<T, W>(p);
      for (i = W; i + W <= n; i += W) sum = F::combine(sum, load<T, W>(p + i));
      T lanes[W];
      store(lanes, sum);
      for (int w = W / 2; w > 0; w /= 2)
        for (int l = 0; l < w; ++l) lanes[l] = F::combine(lanes[l], lanes[l + w]);
      total = lanes[0];
    }
    for (; i < n; ++i) total = F::combine(total, p[i]);
    return total;
  }

 private:
  /// A few rows at a time, so that all of memory is read in long lines.
  static void leaf_columns(const T* p, std::int64_t stride, std::int64_t rows, std::int64_t n,
                           T* to) {
    constexpr std::int64_t at_once = 8;
    for (std::int64_t r = 0; r < rows; r += at_once) {
      const std::int64_t count = std::min(at_once, rows - r);
      const T* from = p + r * stride;
      std::int64_t j = 0;
      for (; j + W <= n; j += W) strip<W>(from, stride, count, r == 0, j, to);
      for (; j + L <= n; j += L) strip<L>(from, stride, count, r == 0, j, to);
      for (; j < n; ++j) {
        T sum = from[j];
        for (std::int64_t i = 1; i < count; ++i) sum = F::combine(sum, from[i * stride + j]);
        to[j] = r == 0 ? sum : F::combine(to[j], sum);
      }
    }
  }
  template <int N>
  static DEFT_ALWAYS_INLINE void strip(const T* from, std::int64_t stride, std::int64_t count,
                                       bool first, std::int64_t j, T* to) {
    auto sum = load<T, N>(from + j);
    for (std::int64_t i = 1; i < count; ++i)
      sum = F::combine(sum, load<T, N>(from + i * stride + j));
    store(to + j, first ? sum : F::combine(load<T, N>(to + j), sum));
  }
};

}  // namespace deft::cpu
