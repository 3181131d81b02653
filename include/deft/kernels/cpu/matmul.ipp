// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/matmul.ipp: products of matrices. Tiles of c in registers where caches hold the
// operands, 5 to 90 % faster than Eigen, which packs both, and for integers; else Eigen's kernels.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/narrow_row.hpp>
#include <deft/kernels/cpu/pack_group.hpp>
#include <deft/kernels/spec/long_sum.hpp>
#include <deft/kernels/spec/matrix_product.hpp>
#include <deft/kernels/team.hpp>
#include <deft/plan/thresholds.hpp>

namespace deft::ext::cpu {
namespace product {
namespace {

/// Operands of S, a result of what they are computed with.
template <class S, class T = S>
struct task : matrix_product {
  const S *a, *b;
  T* c;
};

/// L elements as what is computed with.
template <int L, class S>
DEFT_ALWAYS_INLINE auto load_wide(const S* from) {
  return num::cast<lane_type<S>>(load<S, L>(from));
}

/// Elements in a register.
template <class T>
inline constexpr int per_register = std::max<int>(1, register_bytes / sizeof(T));

/// Products that are added in order, into a leaf of a long_sum. Tiles whose sums fill all registers
/// have longer leaves: there each one costs as much as some products.
constexpr std::int64_t together = thresholds::tile_products,
                       together_in_wide_tiles = thresholds::wide_tile_products;

/// Adds to `sum` the products of R rows of a and k rows of b with L elements each.
template <int R, int L, class T>
DEFT_ALWAYS_INLINE void add_products(const T* a, std::int64_t a_row, std::int64_t a_col, const T* b,
                                     std::int64_t b_row, std::int64_t k, pack_group<T, L, R>& sum) {
#pragma GCC unroll 2
  for (std::int64_t i = 0; i < k; ++i) {
    const auto row = load<T, L>(b + i * b_row);
    const T* at = a + i * a_col;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
      sum.v[r] = multiply_add(broadcast<T, L>(at[r * a_row]), row, sum.v[r]);
  }
}

/// R rows of c, `columns` wide, from k rows of b with L elements each.
template <int R, int L, class T>
void tile(const T* a, std::int64_t a_row, std::int64_t a_col, const T* b, std::int64_t b_row,
          std::int64_t k, T* c, std::int64_t c_row, std::int64_t columns) {
  using sums = pack_group<T, L, R>;
  constexpr std::int64_t leaf_products = L > per_register<T> ? together_in_wide_tiles : together;
  const auto sum =
      sum_in_leaves(k, leaf_products, sums(T(0)),
                    [&](sums& leaf, std::int64_t begin, std::int64_t end) DEFT_INLINED {
                      add_products<R, L>(a + begin * a_col, a_row, a_col, b + begin * b_row, b_row,
                                         end - begin, leaf);
                    });
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    if (columns == L) {
      store(c + r * c_row, sum.v[r]);
    } else {
      T whole[L];
      store(whole, sum.v[r]);
      std::memcpy(c + r * c_row, whole, static_cast<std::size_t>(columns) * sizeof(T));
    }
  }
}

/// A block of c, and what of a and b it takes. Of each row of b there are as many elements to read
/// as a tile has columns.
template <class T>
struct block {
  std::int64_t rows, columns;
  const T *a, *b;
  std::int64_t b_row;
  T* c;
};

/// R rows at a time. The last R overlap those before.
template <int R, int L, class T>
void tiles(const task<T>& t, const block<T>& x) {
  if constexpr (R > 1)
    if (x.rows < R) return tiles<(R > 4 ? 4 : 1), L>(t, x);
  for (std::int64_t i = 0; i < x.rows; i += R) {
    const std::int64_t at = std::min(i, x.rows - R);
    tile<R, L>(x.a + at * t.a_row(), t.a_row(), t.a_col(), x.b, x.b_row, t.k, x.c + at * t.n, t.n,
               x.columns);
  }
}

/// Lanes of a and b by turns, from Offset on.
template <int Offset, class V, int... Lane>
DEFT_ALWAYS_INLINE V interleaved(V a, V b, std::integer_sequence<int, Lane...>) {
  constexpr int n = sizeof...(Lane);
  return __builtin_shufflevector(a, b, (Lane % 2 * n + Offset + Lane / 2)...);
}
/// Copies a square of a matrix, as wide as a register, transposed: in each of log2(N) steps rows of
/// both halves are interleaved.
template <class T>
DEFT_ALWAYS_INLINE void copy_transposed(const T* from, std::int64_t from_apart, T* to,
                                        std::int64_t to_apart) {
  constexpr int N = per_register<T>;
  constexpr auto lanes = std::make_integer_sequence<int, N>();
  vec<T, N> square[2][std::size_t{N}];
  detail::each_index<N>([&](auto i) DEFT_INLINED {
    std::memcpy(&square[0][i], from + i * from_apart, sizeof square[0][i]);
  });
  constexpr int steps = std::countr_zero(static_cast<unsigned>(N));
  detail::each_index<steps>([&](auto step) DEFT_INLINED {
    const auto& x = square[step % 2];
    auto& y = square[1 - step % 2];
    detail::each_index<N / 2>([&](auto i) DEFT_INLINED {
      y[2 * i] = interleaved<0>(x[i], x[i + N / 2], lanes);
      y[2 * i + 1] = interleaved<N / 2>(x[i], x[i + N / 2], lanes);
    });
  });
  detail::each_index<N>([&](auto i) DEFT_INLINED {
    std::memcpy(to + i * to_apart, &square[steps % 2][i], sizeof square[0][i]);
  });
}

/// Copies the columns of a block of b to where they lie together, L of them; zeros where there are
/// fewer.
template <int L, class T>
void pack_columns(const task<T>& t, const block<T>& x, T* to) {
  constexpr std::int64_t N = per_register<T>;
  const T *from = x.b, *const end = t.b + t.k * t.n;
  const std::int64_t next = t.b_row(), step = t.b_col();
  std::int64_t i = 0;
  if (t.transpose_b && x.columns == L)
    for (; i + N <= t.k; i += N, to += N * L, from += N)
      for (std::int64_t l = 0; l < L; l += N) copy_transposed(from + l * step, step, to + l, L);
  for (; i < t.k; ++i, to += L, from += next) {
    if (step == 1 && from + L <= end) {  // perhaps with elements of the next row
      store(to, load<T, L>(from));
    } else {
      store(to, broadcast<T, L>(T(0)));
      for (std::int64_t l = 0; l < x.columns; ++l) to[l] = from[l * step];
    }
  }
}

/// At most L columns. Those of b are copied to where they lie together, if that gains something.
template <int L, class T>
void panel(const task<T>& t, block<T> x) {
  constexpr int R = register_bytes == 64 ? 12 : L > per_register<T> ? 6 : 8;
  const bool whole = !t.transpose_b && x.columns == L;
  if (!whole || (t.n > thresholds::wide_product && x.rows > 2 * R)) {
    auto* packed = static_cast<T*>(thread_scratch(static_cast<std::size_t>(t.k * L) * sizeof(T)));
    pack_columns<L>(t, x, packed);
    x.b = packed, x.b_row = L;
  }
  tiles<R, L>(t, x);
}

// How a product is computed, in pieces that depend neither on each other nor on the number of
// threads: `count` of them, and a call for each.

/// Two registers of columns at a time, with as many rows as there are registers for.
template <class T>
struct by_panels {
  static constexpr std::int64_t L = 2 * per_register<T>, most_rows = thresholds::product_rows;
  std::int64_t down, count;

  explicit by_panels(const matrix_product& p)
      : down((p.m + most_rows - 1) / most_rows), count((p.n + L - 1) / L * down) {}
  double nanoseconds(const matrix_product& p) const {
    return static_cast<double>(count / down * L * p.m) * static_cast<double>(p.k) / 100;
  }
  void operator()(const task<T>& t, std::int64_t piece) const {
    const std::int64_t i = piece % down * most_rows, j = piece / down * L;
    const block<T> x{std::min(most_rows, t.m - i),
                     std::min(L, t.n - j),
                     t.a + i * t.a_row(),
                     t.b + j * t.b_col(),
                     t.b_row(),
                     t.c + i * t.n + j};
    x.columns > per_register<T> ? panel<L>(t, x) : panel<per_register<T>>(t, x);
  }
};

/// Whether Eigen, which copies all of a and b to where they are used, would gain nothing by it: the
/// caches hold a, and the columns of b that are used at a time. The operands of a batch are read
/// from further away, so that it is worth more to copy less of them.
template <class T>
bool by_panels_is_faster(const matrix_product& t, bool alone) {
  constexpr std::int64_t L = 2 * per_register<T>, size = sizeof(T);
  if (t.n <= thresholds::few_columns) return true;
  return (!t.transpose_b || !alone) && t.k * L * size <= thresholds::panel_bytes &&
         t.m * t.k * size <=
             (t.transpose_a && alone ? thresholds::transposed_left_bytes : thresholds::left_bytes);
}

/// Columns from j on, W at a time; returns the first that is left. Each is a sum along k of its
/// own, so its bits do not depend on W.
template <int W, class S, class T>
std::int64_t columns_of_row(const S* a, std::int64_t step, const S* b, std::int64_t k,
                            std::int64_t n, std::int64_t j, T* c) {
  for (; n - j >= W; j += W)
    store(c + j,
          sum_in_leaves(k, together, broadcast<T, W>(T(0)),
                        [&](pack<T, W>& sum, std::int64_t begin, std::int64_t end) DEFT_INLINED {
                          for (std::int64_t i = begin; i < end; ++i)
                            sum = multiply_add(broadcast<T, W>(a[i * step]),
                                               load_wide<W>(b + i * n + j), sum);
                        }));
  return j;
}

/// Sums of neighbouring columns, in memory.
template <class T>
struct strip {
  static constexpr std::int64_t columns = 4096 / sizeof(T);
  static constexpr int L = per_register<T>;
  T sum[std::size_t{columns}] = {};

  friend strip operator+(const strip& a, const strip& b) {
    strip c;
    for (std::int64_t j = 0; j < columns; j += L)
      store(c.sum + j, load<T, L>(a.sum + j) + load<T, L>(b.sum + j));
    return c;
  }
  /// Adds the products of R rows of b, `n` apart, in their order, to the first `count` columns.
  template <int R, class S>
  void add(const S* a, std::int64_t step, const S* b, std::int64_t n, std::int64_t count) {
    for (std::int64_t j = 0; j < count; j += L) {
      auto to = load<T, L>(sum + j);
      detail::each_index<R>([&](auto r) DEFT_INLINED {
        to = multiply_add(broadcast<T, L>(a[r * step]), load_wide<L>(b + r * n + j), to);
      });
      store(sum + j, to);
    }
  }
};

/// Columns as columns_of_row, in whole registers, with the same bits: as many at a time as memory
/// is read in long lines, or half as many where there is a second thread.
template <class S, class T>
std::int64_t columns_by_rows(const S* a, std::int64_t step, const S* b, std::int64_t k,
                             std::int64_t n, T* c) {
  constexpr int at_once = 8;
  const std::int64_t end = n / strip<T>::L * strip<T>::L;
  const bool split = worth_splitting(static_cast<double>(n * k) * sizeof(S) / 60);
  const std::int64_t most = strip<T>::columns / (split ? 2 : 1), strips = (end + most - 1) / most;
  const auto one = [&](std::int64_t p) {
    const std::int64_t j = p * most, count = std::min(most, end - j);
    const auto total = sum_in_leaves(
        k, together, strip<T>(), [&](strip<T>& leaf, std::int64_t i, std::int64_t last) {
          for (; i + at_once <= last; i += at_once)
            leaf.template add<at_once>(a + i * step, step, b + i * n + j, n, count);
          for (; i < last; ++i) leaf.template add<1>(a + i * step, step, b + i * n + j, n, count);
        });
    std::copy(total.sum, total.sum + count, c + j);
  };
  if (split)
    parallel_chunks(strips, one);
  else
    for (std::int64_t p = 0; p < strips; ++p) one(p);
  return end;
}

/// A row times a matrix whose rows are contiguous, or the same with everything transposed:
/// c[j] = sum over i of a[i * step] b[i * n + j].
template <class S, class T>
void row_times_matrix(const S* a, std::int64_t step, const S* b, std::int64_t k, std::int64_t n,
                      T* c) {
  constexpr int L = register_bytes / sizeof(T);
  constexpr std::int64_t size = sizeof(S);
  std::int64_t j = 0;
  if (n * size >= thresholds::streamed_row && k * n * size >= thresholds::streamed_matrix)
    j = columns_by_rows(a, step, b, k, n, c);
  j = columns_of_row<4 * L>(a, step, b, k, n, j, c);
  j = columns_of_row<2 * L>(a, step, b, k, n, j, c);
  j = columns_of_row<L>(a, step, b, k, n, j, c);
  constexpr int least = 16 / sizeof(T);  // no register is narrower
  if constexpr (L / 2 >= least) j = columns_of_row<L / 2>(a, step, b, k, n, j, c);
  if constexpr (L / 4 >= least) j = columns_of_row<L / 4>(a, step, b, k, n, j, c);
  for (; j < n; ++j)
    c[j] = sum_in_leaves(k, together, num::lane<T>(T(0)),
                         [&](num::lane<T>& sum, std::int64_t begin, std::int64_t end) DEFT_INLINED {
                           for (std::int64_t i = begin; i < end; ++i)
                             sum.v = multiply_add<T>(a[i * step], b[i * n + j], sum.v);
                         })
               .v;
}

/// The sum of the products of two rows of k elements.
template <class S>
lane_type<S> dot(const S* a, const S* b, std::int64_t k) {
  using T = lane_type<S>;
  constexpr int L = register_bytes / sizeof(T), W = 4 * L;
  const std::int64_t whole = k / W * W;
  const auto sum =
      sum_in_leaves(whole, together * W, broadcast<T, W>(T(0)),
                    [&](pack<T, W>& leaf, std::int64_t begin, std::int64_t end) DEFT_INLINED {
                      for (std::int64_t i = begin; i < end; i += W)
                        leaf = multiply_add(load_wide<W>(a + i), load_wide<W>(b + i), leaf);
                    });
  T lanes[W], total = 0;
  store(lanes, sum);
  for (int w = W / 2; w > 0; w /= 2)
    for (int l = 0; l < w; ++l) lanes[l] = (num::lane<T>(lanes[l]) + lanes[l + w]).v;
  for (std::int64_t i = whole; i < k; ++i) total = multiply_add<T>(a[i], b[i], total);
  return (num::lane<T>(lanes[0]) + total).v;
}

/// Where a or b is a single row or column. Every output is a dot product of its own, or a sum along
/// k of its own, so that this one piece splits itself further.
template <class S>
struct by_vectors {
  using T = lane_type<S>;
  static constexpr std::int64_t count = 1;

  static bool possible(const matrix_product& p) { return p.m == 1 || p.n == 1; }
  static double nanoseconds(const matrix_product& p) {
    return static_cast<double>(p.m * p.n * p.k) / 16;
  }
  void operator()(const task<S, T>& t, std::int64_t) const {
    if (t.m == 1 && t.n == 1) {
      *t.c = dot(t.a, t.b, t.k);
    } else if (t.m == 1 && !t.transpose_b) {
      row_times_matrix(t.a, 1, t.b, t.k, t.n, t.c);
    } else if (t.n == 1 && t.transpose_a) {
      row_times_matrix(t.b, 1, t.a, t.k, t.m, t.c);
    } else {
      const S* rows = t.m == 1 ? t.b : t.a;
      const S* v = t.m == 1 ? t.a : t.b;
      constexpr std::int64_t chunk = 64;
      const std::int64_t n = t.m * t.n;
      parallel_chunks((n + chunk - 1) / chunk, nanoseconds(t), [&](std::int64_t p) {
        for (std::int64_t i = p * chunk; i < std::min(n, (p + 1) * chunk); ++i)
          t.c[i] = dot(rows + i * t.k, v, t.k);
      });
    }
  }
};

/// Block sizes by Eigen, blocks from the thread's own memory: Eigen's would be allocated anew each
/// time, and at some sizes given back to the system in between.
template <class T>
class blocking : public Eigen::internal::level3_blocking<T, T> {
 public:
  blocking(std::int64_t rows, std::int64_t cols, std::int64_t depth) {
    this->m_mc = rows;
    this->m_nc = cols;
    this->m_kc = depth;
    Eigen::internal::computeProductBlockingSizes<T, T, 1>(this->m_kc, this->m_mc, this->m_nc,
                                                          Eigen::Index(1));
    const auto a = static_cast<std::size_t>(this->m_mc * this->m_kc),
               b = static_cast<std::size_t>(this->m_kc * this->m_nc);
    const std::size_t apart = (a * sizeof(T) + 63) / 64 * 64;
    auto* room = static_cast<char*>(thread_scratch(apart + b * sizeof(T)));
    this->m_blockA = reinterpret_cast<T*>(room);
    this->m_blockB = reinterpret_cast<T*>(room + apart);
  }
};

/// By Eigen, column-major: cT = bT aT. `b_first` and `a_first` tell the order in which the operands
/// then lie.
template <int BOrder, int AOrder, class T>
void packed(const task<T>& t, std::int64_t m, std::int64_t n, const T* a, const T* b, T* c) {
  using namespace Eigen;
  for (std::int64_t i = 0; i < m; ++i)
    std::memset(c + i * t.n, 0, static_cast<std::size_t>(n) * sizeof(T));
  blocking<T> blocks(n, m, t.k);
  internal::general_matrix_matrix_product<Index, T, BOrder, false, T, AOrder, false, ColMajor,
                                          1>::run(n, m, t.k, b, t.transpose_b ? t.k : t.n, a,
                                                  t.transpose_a ? t.m : t.k, c, 1, t.n, T(1),
                                                  blocks, nullptr);
}
template <class T>
void packed_piece(const task<T>& t, std::int64_t i, std::int64_t m, std::int64_t j,
                  std::int64_t n) {
  constexpr int columns = Eigen::ColMajor, rows = Eigen::RowMajor;
  const T* a = t.a + i * t.a_row();
  const T* b = t.b + j * t.b_col();
  T* c = t.c + i * t.n + j;
  if (t.transpose_a)
    t.transpose_b ? packed<rows, rows>(t, m, n, a, b, c) : packed<columns, rows>(t, m, n, a, b, c);
  else
    t.transpose_b ? packed<rows, columns>(t, m, n, a, b, c)
                  : packed<columns, columns>(t, m, n, a, b, c);
}

/// Cut along the longer extent of c.
template <class T>
struct by_eigen {
  bool by_rows;
  std::int64_t extent, piece, count;

  explicit by_eigen(const matrix_product& p) : by_rows(p.m >= p.n), extent(by_rows ? p.m : p.n) {
    std::int64_t pieces = std::max<std::int64_t>(1, extent / thresholds::packed_rows);
    if (nanoseconds(p) < thresholds::split_work) pieces = 1;
    if (pieces > 1) pieces = std::min<std::int64_t>(pieces / 2 * 2, 64);
    piece = ((extent + pieces - 1) / pieces + 15) / 16 * 16;
    count = (extent + piece - 1) / piece;
  }
  static double nanoseconds(const matrix_product& p) {
    return static_cast<double>(p.m * p.n) * static_cast<double>(p.k) / 100;
  }
  void operator()(const task<T>& t, std::int64_t number) const {
    const std::int64_t begin = number * piece, n = std::min(piece, extent - begin);
    by_rows ? packed_piece(t, begin, n, 0, t.n) : packed_piece(t, 0, t.m, begin, n);
  }
};

/// Nanoseconds that a product of a batch takes besides its multiplications.
constexpr double of_small_product = 25;

/// All products, piece by piece; small ones of a batch some at a time.
template <class S, class T, class Pieces>
void run(const product_batches& what, const Pieces& by, const S* a, const S* b, T* c) {
  const matrix_product& p = what.batch;
  const std::int64_t products = what.products(), pieces = products * by.count;
  const double nanoseconds = by.nanoseconds(p) + (products > 1 ? of_small_product : 0);
  std::int64_t some = 1;
  if (products > 1) {
    const double many = thresholds::awake_team * static_cast<double>(by.count) / nanoseconds;
    some = static_cast<std::int64_t>(std::clamp(many, 1.0, static_cast<double>(pieces)));
  }
  parallel_chunks((pieces + some - 1) / some, nanoseconds * static_cast<double>(products),
                  [&](std::int64_t chunk) {
                    const std::int64_t end = std::min(pieces, (chunk + 1) * some);
                    for (std::int64_t i = chunk * some; i < end; ++i) {
                      const std::int64_t product = i / by.count;
                      const auto at = what.at(product);
                      by({p, a + at.a, b + at.b, c + product * p.m * p.n}, i % by.count);
                    }
                  });
}
template <class T>
void run(const product_batches& what, const T* a, const T* b, T* c) {
  const matrix_product& p = what.batch;
  const std::int64_t elements = what.products() * p.m * p.n;
  if (elements == 0) return;
  if (p.k == 0) {
    std::memset(c, 0, static_cast<std::size_t>(elements) * sizeof(T));
    return;
  }
  if (by_vectors<T>::possible(p)) return run(what, by_vectors<T>(), a, b, c);
  if constexpr (is_floating_type<T>)
    if (!by_panels_is_faster<T>(p, what.products() == 1)) return run(what, by_eigen<T>(p), a, b, c);
  run(what, by_panels<T>(p), a, b, c);
}

}  // namespace
}  // namespace product

namespace {

template <class T>
class kernel_of<spec::matmul, T> final : public spec::matmul {
  void ready() override {
    matmul::ready();
    const matrix_product& p = what_.batch;
    cost_ = 20 + static_cast<double>(what_.products() * p.m * p.n) * static_cast<double>(p.k) / 100;
  }
  void run(const kernel_call& c) override {
    product::run(what_, static_cast<const T*>(c.in[0]), static_cast<const T*>(c.in[1]),
                 static_cast<T*>(c.out[0]));
  }
};

/// Of bfloat16 or float16. Where a or b is a vector, the matrix is read once, and converted in
/// registers; other products are those of float, between conversions.
template <class S>
class half_product final : public kernel {
 public:
  half_product(const node_def& n, kernel_ptr converts)
      : op_(decode<op::matmul>(n.attributes)), converts_(std::move(converts)) {}

  void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) override {
    what_ = product_batches(op_, in[0].shape, in[1].shape);
    elements_ = out[0].shape.elements();
    reads_once_ =
        product::by_vectors<S>::possible(what_.batch) && what_.batch.k > 0 && elements_ > 0;
    if (!reads_once_) converts_->prepare(in, out);
  }
  void run(const kernel_call& c) override {
    if (!reads_once_) return converts_->run(c);
    product::run(what_, product::by_vectors<S>(), static_cast<const S*>(c.in[0]),
                 static_cast<const S*>(c.in[1]), static_cast<float*>(c.scratch));
    const void* const sums = c.scratch;
    const std::uintptr_t dense = ~std::uintptr_t{0};
    cast_row<float, S>.run({&sums, &dense, c.out[0], elements_});
  }
  std::size_t scratch() const override {
    return reads_once_ ? static_cast<std::size_t>(elements_) * sizeof(float) : converts_->scratch();
  }
  double cost() const override {
    return reads_once_ ? 20 + static_cast<double>(what_.products()) *
                                  product::by_vectors<S>::nanoseconds(what_.batch)
                       : converts_->cost();
  }

 private:
  const op::matmul op_;
  const kernel_ptr converts_;
  product_batches what_;
  std::int64_t elements_ = 0;
  bool reads_once_ = false;
};

}  // namespace

kernel_ptr make_product(const node_def& n, std::span<const tensor_type> in) {
  kernel_ptr made = make_kernel<this_device, spec::matmul>(n, in);
  if (in[0].type == dtype::bfloat16)
    return std::make_unique<half_product<bfloat16>>(n, std::move(made));
  if (in[0].type == dtype::float16)
    return std::make_unique<half_product<float16>>(n, std::move(made));
  return made;
}

}  // namespace deft::ext::cpu
