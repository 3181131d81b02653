// SPDX-License-Identifier: Apache-2.0
// deft/op/matmul.ipp: shape rule of matmul.
#pragma once
#include <deft/op/matmul.hpp>

namespace deft {

ext::tensor_type op::matmul::infer(std::span<const ext::tensor_type> in) const {
  const auto &a = in[0], &b = in[1];
  if (a.type != b.type)
    ext::fail(errc::invalid_argument, "[matmul] the operands' dtypes differ: ", a.type, " and ",
              b.type, "; use cast");
  if (!ext::is_floating(a.type) && a.type != dtype::int32 && a.type != dtype::int64)
    ext::fail(errc::invalid_argument, "[matmul] is not defined for ", a.type);
  if (a.shape.rank() != 2 || b.shape.rank() != 2)
    ext::fail(errc::invalid_argument, "[matmul] takes matrices: ", a.shape, " x ", b.shape);
  dims out;
  if (!shape(a.shape, b.shape, out))
    ext::fail(errc::invalid_argument, "[matmul] inner extents differ: ", a.shape,
              transpose_a ? "T" : "", " x ", b.shape, transpose_b ? "T" : "");
  return {out, a.type};
}

any_tensor matmul(const any_tensor& a, const any_tensor& b, bool transpose_a, bool transpose_b,
                  ext::source_location w) {
  const ext::output in[] = {a.handle(), b.handle()};
  return detail::add_node(ext::record_of<op::matmul>,
                          ext::encode(op::matmul{transpose_a, transpose_b}), in, w);
}

}  // namespace deft
