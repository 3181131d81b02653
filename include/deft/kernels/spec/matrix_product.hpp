// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/matrix_product.hpp: extents and strides of a product of matrices.
#pragma once
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/op/matmul.hpp>

namespace deft::ext {

inline constexpr dtype_set matmul_dtypes = floating_dtypes | index_dtypes;

/// c = op(a) op(b), (m,k) x (k,n), all row-major and dense.
struct matrix_product {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;

  matrix_product() = default;
  /// Of matrices of these extents. Throws invalid_argument if the inner ones differ.
  matrix_product(const op::matmul& o, const dims& a, const dims& b)
      : m(a[o.transpose_a ? 1 : 0]),
        n(b[o.transpose_b ? 0 : 1]),
        k(a[o.transpose_a ? 0 : 1]),
        transpose_a(o.transpose_a),
        transpose_b(o.transpose_b) {
    dims out;
    if (!o.shape(a, b, out))
      fail(errc::invalid_argument, "[matmul] inner extents differ: ", a, transpose_a ? "T" : "",
           " x ", b, transpose_b ? "T" : "");
  }

  // Distance in memory between neighbours along each extent.
  DEFT_HD std::int64_t a_row() const { return transpose_a ? 1 : k; }
  DEFT_HD std::int64_t a_col() const { return transpose_a ? m : 1; }
  DEFT_HD std::int64_t b_row() const { return transpose_b ? 1 : n; }
  DEFT_HD std::int64_t b_col() const { return transpose_b ? k : 1; }
};

namespace spec {

class matmul : public kernel_spec<op::matmul, matmul_dtypes, by_input<0>> {
 protected:
  void ready() override { what_ = matrix_product(op_, in(0), in(1)); }
  matrix_product what_;
};

using matmul_kernels = kernel_list<matmul>;

}  // namespace spec
}  // namespace deft::ext
