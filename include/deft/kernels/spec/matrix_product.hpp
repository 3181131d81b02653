// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/matrix_product.hpp: extents and strides of products of matrices.
#pragma once
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/op/matmul.hpp>

namespace deft::ext {

inline constexpr dtype_set matmul_dtypes = floating_dtypes | index_dtypes;

/// c = op(a) op(b), (m,k) x (k,n), all row-major and dense; or `count` of them, one behind the
/// other in c, whose operands are so many elements apart: 0 where all have the same one.
struct matrix_product {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t count = 1, a_apart = 0, b_apart = 0;

  // Distance in memory between neighbours along each extent.
  DEFT_HD std::int64_t a_row() const { return transpose_a ? 1 : k; }
  DEFT_HD std::int64_t a_col() const { return transpose_a ? m : 1; }
  DEFT_HD std::int64_t b_row() const { return transpose_b ? 1 : n; }
  DEFT_HD std::int64_t b_col() const { return transpose_b ? k : 1; }
};

/// All products of a node, in batches that a matrix_product describes.
struct product_batches {
  matrix_product batch;
  dims extents, a_apart, b_apart;  ///< of the axes around it, the innermost last

  product_batches() = default;
  /// Throws invalid_argument if operands of these shapes do not match.
  product_batches(const op::matmul& o, const dims& a, const dims& b) {
    const dims out = o.shape_checked(a, b);
    batch.m = out[out.n - 2], batch.n = out.back();
    batch.k = a[a.n - (o.transpose_a ? 2 : 1)];
    batch.transpose_a = o.transpose_a, batch.transpose_b = o.transpose_b;
    std::int64_t a_size = batch.m * batch.k, b_size = batch.k * batch.n;
    int axes = 0;  // extents[0] is the innermost at first
    for (int i = 3; i <= out.n; ++i) {
      const std::int64_t extent = out[out.n - i], of_a = i <= a.n ? a[a.n - i] : 1,
                         of_b = i <= b.n ? b[b.n - i] : 1;
      if (extent == 1) continue;
      const std::int64_t by_a = of_a == 1 ? 0 : a_size, by_b = of_b == 1 ? 0 : b_size;
      if (axes == 0 && !o.transpose_a && by_a == batch.m * batch.k && by_b == 0) {
        batch.m *= extent;  // rows of one matrix
      } else if (axes > 0 && by_a == a_apart[axes - 1] * extents[axes - 1] &&
                 by_b == b_apart[axes - 1] * extents[axes - 1]) {
        extents[axes - 1] *= extent;
      } else {
        extents.push_back(extent), a_apart.push_back(by_a), b_apart.push_back(by_b);
        ++axes;
      }
      a_size *= of_a, b_size *= of_b;
    }
    if (axes == 0) return;
    batch.count = extents[0], batch.a_apart = a_apart[0], batch.b_apart = b_apart[0];
    extents = outer(extents), a_apart = outer(a_apart), b_apart = outer(b_apart);
  }

  /// How many batches there are.
  std::int64_t batches() const { return extents.elements(); }
  /// How many products, of all batches.
  std::int64_t products() const { return batches() * batch.count; }
  /// Elements in front of the operands of a product.
  struct offsets {
    std::int64_t a, b;
  };
  /// Those of number i of all products.
  offsets at(std::int64_t i) const {
    offsets o{i % batch.count * batch.a_apart, i % batch.count * batch.b_apart};
    i /= batch.count;
    for (int axis = extents.n; axis-- > 0; i /= extents[axis]) {
      o.a += i % extents[axis] * a_apart[axis];
      o.b += i % extents[axis] * b_apart[axis];
    }
    return o;
  }

 private:
  /// All but the first, in reverse order.
  static dims outer(const dims& d) {
    dims rest;
    for (int i = d.n; i-- > 1;) rest.push_back(d[i]);
    return rest;
  }
};

namespace spec {

class matmul : public kernel_spec<op::matmul, matmul_dtypes, by_input<0>> {
 protected:
  void ready() override { what_ = product_batches(op_, in(0), in(1)); }
  product_batches what_;
};

using matmul_kernels = kernel_list<matmul>;

}  // namespace spec
}  // namespace deft::ext
