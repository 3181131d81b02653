// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/row_reduction.hpp: rows and columns of a matrix folded into one: the loops of
// reductions. The order is that of a fixed tree, so that pieces may be folded on any thread.
#pragma once
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/pack.hpp>
#include <deft/kernels/spec/reducers.hpp>
#include <deft/plan/thresholds.hpp>

namespace deft::ext::cpu {

/// The largest where NaN does not matter: fewer instructions.
struct largest_number : largest {
  template <class V>
  static DEFT_ALWAYS_INLINE V combine(const V& a, const V& b) {
    if constexpr (std::is_arithmetic_v<V>)
      return b > a ? b : a;
    else
      return detail::each<V>(
          [](auto x, auto y) DEFT_INLINED {
            using T = std::remove_cvref_t<decltype(x[0])>;
            return packet<T, sizeof(x) / sizeof(T)>::max(x, y);
          },
          a, b);
  }
};

/// The columns of a matrix, of which `rows` rows of `n` elements are folded into one.
struct column_layout {
  static constexpr std::int64_t leaf_rows = thresholds::leaf_rows;

  std::int64_t rows = 0, n = 1;
  std::int64_t together = 1;  ///< short rows that are folded as one; the columns' parts at the end

  column_layout() = default;
  column_layout(std::int64_t count, std::int64_t elements) : rows(count), n(elements) {
    constexpr std::int64_t narrow = thresholds::narrow_together;
    if (n > 0 && n < thresholds::narrow_columns && rows >= narrow / n) together = narrow / n;
  }
  std::int64_t wide() const { return together * n; }
  std::int64_t wide_rows() const { return rows / together; }
  std::int64_t rest() const { return rows % together; }
  /// Rows may come in multiples of this many.
  std::int64_t unit() const { return 2 * together; }
  /// Or in pieces of this many times a power of two, to be joined.
  std::int64_t piece() const { return leaf_rows * together; }
};

template <class T, class F>
struct fold {
  static constexpr int L = register_bytes / static_cast<int>(sizeof(T)), W = fold_lanes<T>;
  static constexpr std::int64_t leaf_elements =
      thresholds::leaf_packs * W;  ///< of a row, folded in a line
  static constexpr std::int64_t leaf_rows = column_layout::leaf_rows;

  /// Where a tree over n > unit elements parts: the left side is the largest power of two of units.
  static constexpr std::int64_t half(std::int64_t n, std::int64_t unit) {
    std::int64_t left = unit;
    while (left * 2 < n) left *= 2;
    return left;
  }

  /// Lanes that a row is folded into side by side; a few elements may be left over.
  using lanes = pack<T, W>;
  /// A part of the tree of a row's whole packs: n elements, a multiple of W.
  static lanes row_part(const T* p, std::int64_t n) {
    if (n <= leaf_elements) {
      const lanes sum = leaf(p, n);
      return sum;
    }
    const std::int64_t left = half(n, leaf_elements);
    const lanes first = row_part(p, left);
    return F::combine(first, row_part(p + left, n - left));
  }
  static DEFT_ALWAYS_INLINE lanes leaf(const T* p, std::int64_t n) {
    return leaf(p + W, n - W, load<T, W>(p));
  }
  /// Goes on with `sum`.
  static DEFT_ALWAYS_INLINE lanes leaf(const T* p, std::int64_t n, lanes sum) {
    for (const T* end = p + n; p < end; p += W) sum = F::combine(sum, load<T, W>(p));
    return sum;
  }
  /// The same tree over the parts that `row_part` gave for pieces of `leaf_elements` times a power
  /// of two.
  static lanes join_parts(const lanes* parts, std::int64_t n) {
    if (n == 1) return *parts;
    const std::int64_t left = half(n, 1);
    return F::combine(join_parts(parts, left), join_parts(parts + left, n - left));
  }
  /// The whole of a row, given what its whole packs gave and the n < W elements behind them.
  static T finish(const lanes& sum, const T* tail, std::int64_t n) {
    return across(finish_lanes(sum, tail, n));
  }
  /// n elements in a line.
  static T row(const T* p, std::int64_t n) { return across(row_lanes(p, n)); }
  /// `rows` of n elements, one after another.
  static void rows(const T* p, std::int64_t rows, std::int64_t n, T* to) {
    std::int64_t r = 0;
    if constexpr (folds_together) {
      const auto together = [&](auto lanes_of) DEFT_INLINED {
        for (; r + L <= rows; r += L) {
          pack<T, L> all[L];
          detail::each_index<L>([&](auto k) DEFT_INLINED { all[k] = lanes_of(p + (r + k) * n); });
          store(to + r, across_each(all));
        }
      };
      // Short ones stay in registers.
      if (n <= L)
        together([&](const T* row) DEFT_INLINED { return some_lanes(row, n); });
      else if (n <= 2 * L)
        together([&](const T* row) DEFT_INLINED {
          return F::combine(load<T, L>(row), some_lanes(row + L, n - L));
        });
      else if (n < leaf_elements)
        for (; r + L <= rows; r += L) {
          pack<T, L> all[L];
          for (int k = 0; k < L; ++k) all[k] = row_lanes(p + (r + k) * n, n);
          store(to + r, across_each(all));
        }
    }
    for (; r < rows; ++r) to[r] = row(p + r * n, n);
  }
  /// The lanes of a pack, folded by halves.
  template <int N>
  static T across(const pack<T, N>& p) {
    if constexpr (N * sizeof(T) <= 16) {
      T sum = p.v[0][0];
      for (int i = 1; i < N; ++i) sum = F::combine(sum, static_cast<T>(p.v[0][i]));
      return sum;
    } else {
      return across(F::combine(halved<0>(p), halved<1>(p)));
    }
  }

  /// As many lanes as `across` folds one after another.
  static constexpr int last_lanes = 16 / static_cast<int>(sizeof(T));
  static constexpr bool folds_together = !scalar_registers && sizeof(T) >= 4;
  /// `across` of each of L packs, one result a lane: they are transposed on the way.
  static DEFT_ALWAYS_INLINE pack<T, L> across_each(const pack<T, L> (&all)[L]) {
    return across_each<L>([&](auto k) DEFT_INLINED { return all[k]; });
  }

  /// Columns of `rows` x n elements whose rows are `stride` apart, into `to`. `room` holds n
  /// elements for each level of the tree.
  static void columns(const T* p, std::int64_t stride, std::int64_t rows, std::int64_t n, T* to,
                      T* room) {
    if (rows <= leaf_rows) return add_rows(p, stride, rows, n, to, true);
    const std::int64_t left = half(rows, leaf_rows);
    columns(p, stride, left, n, to, room);
    columns(p + left * stride, stride, rows - left, n, room, room + n);
    into(to, room, n);
  }
  /// Rows of a leaf, an even number unless they are its last: `first` ones, or to be added to `to`.
  /// Two at a time, so that all of memory is read in long lines.
  static void add_rows(const T* p, std::int64_t stride, std::int64_t rows, std::int64_t n, T* to,
                       bool first) {
    constexpr std::int64_t at_once = 2;
    for (std::int64_t r = 0; r < rows; r += at_once, first = false) {
      const std::int64_t count = std::min(at_once, rows - r);
      const T* from = p + r * stride;
      std::int64_t j = 0;
      for (; j + W <= n; j += W) strip<W>(from, stride, count, first, j, to);
      for (; j + L <= n; j += L) strip<L>(from, stride, count, first, j, to);
      for (; j < n; ++j) {
        T sum = from[j];
        for (std::int64_t i = 1; i < count; ++i) sum = F::combine(sum, from[i * stride + j]);
        to[j] = first ? sum : F::combine(to[j], sum);
      }
    }
  }
  /// The same tree over the rows of n that `columns` gave for pieces of `leaf_rows` times a power
  /// of two; what is left is in the first.
  static void join_columns(T* parts, std::int64_t count, std::int64_t n) {
    if (count == 1) return;
    const std::int64_t left = half(count, 1);
    join_columns(parts, left, n);
    join_columns(parts + left * n, count - left, n);
    into(parts, parts + left * n, n);
  }
  /// The columns, given those of the wide rows and the rows behind them.
  static void join_wide(const column_layout& c, const T* wide, const T* rest, T* to) {
    std::copy(wide, wide + c.n, to);
    for (std::int64_t i = 1; i < c.together; ++i) into(to, wide + i * c.n, c.n);
    for (std::int64_t r = 0; r < c.rest(); ++r) into(to, rest + r * c.n, c.n);
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

 private:
  /// Up to L elements.
  static DEFT_ALWAYS_INLINE pack<T, L> some_lanes(const T* p, std::int64_t n) {
    return n == L ? load<T, L>(p) : load_some<L>(p, n, F::template nothing<T>());
  }
  /// n elements in a line, folded into L lanes.
  static pack<T, L> row_lanes(const T* p, std::int64_t n) {
    if (n >= W) {
      const std::int64_t whole = n / W * W;
      return finish_lanes(n <= leaf_elements ? leaf(p, whole) : row_part(p, whole), p + whole,
                          n - whole);
    }
    return n >= L ? rest(load<T, L>(p), p + L, n - L) : some_lanes(p, n);
  }
  static DEFT_ALWAYS_INLINE pack<T, L> finish_lanes(const lanes& sum, const T* tail,
                                                    std::int64_t n) {
    return rest(
        F::combine(halved<0>(halved<0>(sum)),
                   F::combine(halved<1>(halved<0>(sum)),
                              F::combine(halved<0>(halved<1>(sum)), halved<1>(halved<1>(sum))))),
        tail, n);
  }
  /// `sum` and the n < W elements at p.
  static DEFT_ALWAYS_INLINE pack<T, L> rest(pack<T, L> sum, const T* p, std::int64_t n) {
    for (; n >= L; n -= L, p += L) sum = F::combine(sum, load<T, L>(p));
    return n > 0 ? F::combine(sum, load_some<L>(p, n, F::template nothing<T>())) : sum;
  }

  template <int Part, int N>
  static DEFT_ALWAYS_INLINE pack<T, N / 2> halved(const pack<T, N>& p) {
    using H = pack<T, N / 2>;
    H h;
    if constexpr (H::width < pack<T, N>::width)
      h.v[0] = detail::take<T, H::width, Part>(p);
    else
      detail::each_register<H>([&](auto i) DEFT_INLINED { h.v[i] = p.v[Part * H::count + i]; });
    return h;
  }

  /// Of N registers, each with N lanes of L / N rows one after the other: the k-th has rows k,
  /// k + N, k + 2 N, …
  template <int N, class Row>
  static DEFT_ALWAYS_INLINE pack<T, L> across_each(Row row) {
    using P = pack<T, L>;
    constexpr std::integral_constant<int, 0> k0;
    constexpr std::integral_constant<int, 1> k1;
    if constexpr (N > last_lanes) {
      P half[N / 2];
      detail::each_index<N / 2>([&](auto k) DEFT_INLINED {
        const P a = row(k), b = row(std::integral_constant<int, k + N / 2>());
        half[k] = F::combine(halves<N, 0>(a, b, sequence), halves<N, 1>(a, b, sequence));
      });
      return across_each<N / 2>([&](auto k) DEFT_INLINED { return half[k]; });
    } else if constexpr (N == 4) {
      constexpr std::integral_constant<int, 2> k2;
      constexpr std::integral_constant<int, 3> k3;
      const P low01 = turns<1, 0>(row(k0), row(k1), sequence);
      const P low23 = turns<1, 0>(row(k2), row(k3), sequence);
      const P high01 = turns<1, 1>(row(k0), row(k1), sequence);
      const P high23 = turns<1, 1>(row(k2), row(k3), sequence);
      const P sum =
          F::combine(turns<2, 0>(low01, low23, sequence), turns<2, 1>(low01, low23, sequence));
      return F::combine(F::combine(sum, turns<2, 0>(high01, high23, sequence)),
                        turns<2, 1>(high01, high23, sequence));
    } else {
      static_assert(N == 2);
      return F::combine(turns<1, 0>(row(k0), row(k1), sequence),
                        turns<1, 1>(row(k0), row(k1), sequence));
    }
  }
  static constexpr std::make_integer_sequence<int, L> sequence{};  ///< for shuffles
  /// The lower or the upper half of each group of N lanes, of a and of b in turn.
  template <int N, int Part, int... K>
  static DEFT_ALWAYS_INLINE pack<T, L> halves(const pack<T, L>& a, const pack<T, L>& b,
                                              std::integer_sequence<int, K...>) {
    constexpr int H = N / 2;
    pack<T, L> p;
    p.v[0] =
        __builtin_shufflevector(a.v[0], b.v[0], (K / H % 2 * L + K / N * N + Part * H + K % H)...);
    return p;
  }
  /// Of the lower or the upper half of each 16 bytes, `Size` lanes of a and of b in turn.
  template <int Size, int Part, int... K>
  static DEFT_ALWAYS_INLINE pack<T, L> turns(const pack<T, L>& a, const pack<T, L>& b,
                                             std::integer_sequence<int, K...>) {
    constexpr int G = last_lanes;
    pack<T, L> p;
    p.v[0] = __builtin_shufflevector(
        a.v[0], b.v[0],
        (K / Size % 2 * L + K / G * G + Part * (G / 2) + K % G / (2 * Size) * Size + K % Size)...);
    return p;
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

}  // namespace deft::ext::cpu
