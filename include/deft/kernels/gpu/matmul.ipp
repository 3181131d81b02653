// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/matmul.ipp: products of matrices: by the system's library where it has one, else
// by threads that each compute a few elements.
#pragma once
#include <deft/core/num_lane.hpp>
#include <deft/kernels/gpu/divider.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/spec/long_sum.hpp>
#include <deft/kernels/spec/matrix_product.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// Up to R rows and C columns of one product's c, whose sums are taken in order of k, in leaves.
/// Neighbouring threads have neighbouring columns: a thread's own are `apart` columns apart.
template <class T>
struct product_tile {
  static constexpr int R = 4, C = 4;
  matrix_product what;
  const T *a, *b;
  T* c;
  divider apart, tiles;  ///< tiles of one product

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t product = number, down = tiles.cut(product);
    const std::int64_t column = apart.cut(down), row = down * R;
    const T *from_a[R], *from_b[C];
    // What is beyond the edge is computed from the last row or column, and not stored.
    for (int r = 0; r < R; ++r)
      from_a[r] = a + product * what.a_apart + within(row + r, what.m) * what.a_row();
    for (int l = 0; l < C; ++l)
      from_b[l] =
          b + product * what.b_apart + within(column + l * apart.by(), what.n) * what.b_col();
    const std::int64_t step_a = what.a_col(), step_b = what.b_row();
    const sums all = sum_in_leaves(what.k, addends_together, sums{},
                                   [&](sums& leaf, std::int64_t begin, std::int64_t end) {
                                     for (std::int64_t i = begin; i < end; ++i) {
                                       T x[R], y[C];
                                       for (int r = 0; r < R; ++r) x[r] = from_a[r][i * step_a];
                                       for (int l = 0; l < C; ++l) y[l] = from_b[l][i * step_b];
                                       for (int r = 0; r < R; ++r)
                                         for (int l = 0; l < C; ++l)
                                           leaf.v[r][l] = multiply_add(x[r], y[l], leaf.v[r][l]);
                                     }
                                   });
    for (int r = 0; r < R; ++r)
      for (int l = 0; l < C; ++l)
        if (const std::int64_t j = column + l * apart.by(); row + r < what.m && j < what.n)
          c[(product * what.m + row + r) * what.n + j] = all.v[r][l];
  }

 private:
  struct sums {
    T v[R][C];
    friend DEFT_HD sums operator+(const sums& left, const sums& right) {
      sums both;
      for (int r = 0; r < R; ++r)
        for (int l = 0; l < C; ++l) both.v[r][l] = (num::lane<T>(left.v[r][l]) + right.v[r][l]).v;
      return both;
    }
  };
  static DEFT_HD std::int64_t within(std::int64_t i, std::int64_t n) { return i < n ? i : n - 1; }
  static DEFT_HD T multiply_add(T x, T y, T z) {
    if constexpr (is_floating_type<T>)
      return x * y + z;  // rounded once where that is as quick
    else
      return (num::lane<T>(x) * y + z).v;
  }
};

template <class T>
class kernel_of<spec::matmul, T> final : public queued<spec::matmul> {
  void queue(const kernel_call& c, stream& s) override {
    const matrix_product& p = what_.batch;
    if (p.count == 0) return;
    for (std::int64_t i = 0; i < what_.batches(); ++i) {
      const auto at = what_.at(i * p.count);
      queue_product(s, type(), p, static_cast<const T*>(c.in[0]) + at.a,
                    static_cast<const T*>(c.in[1]) + at.b,
                    static_cast<T*>(c.out[0]) + i * p.count * p.m * p.n);
    }
  }
};

template <class T>
void queue_tiles(stream& s, const matrix_product& p, const void* a, const void* b, void* c) {
  using F = product_tile<T>;
  const std::int64_t apart = (p.n + F::C - 1) / F::C, tiles = (p.m + F::R - 1) / F::R * apart;
  if (p.k == 0) a = b = c;  // which may be null: what is read begins nowhere
  s.launch(p.count * tiles,
           F{p, s.in<T>(a), s.in<T>(b), s.out<T>(c), divider(apart), divider(tiles)});
}

}  // namespace

void queue_product(stream& s, dtype t, const matrix_product& p, const void* a, const void* b,
                   void* c) {
  if (p.m == 0 || p.n == 0 || p.count == 0 || s.multiply(t, p, a, b, c)) return;
  visit_dtype_in<matmul_dtypes>(t, [&]<class T>() { queue_tiles<T>(s, p, a, b, c); });
}

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
