// SPDX-License-Identifier: Apache-2.0
// deft/op/prod.ipp: shape rule of prod, and its gradient.
#pragma once
#include <deft/op/cast.hpp>
#include <deft/op/div.hpp>
#include <deft/op/equal.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/prod.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/where.hpp>

namespace deft {

ext::tensor_type op::prod::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[prod] is not defined for ", in[0].type);
  return {shape_checked(name, in[0].shape), in[0].type};
}

any_tensor detail::prod_gradient(const any_tensor& x, const any_tensor& dz,
                                 const op::reduction& r) {
  // The product of the others: of those that are not 0, unless one of the others is.
  const axes over(r.axes);
  const any_tensor zero = x == 0, zeros = sum(cast(zero, dtype::int64), over, keepdims);
  const any_tensor factors = where(zero, 1, x), all = prod(factors, over, keepdims);
  return spread(dz, x, r) * where(zeros == cast(zero, dtype::int64), all / factors, 0);
}

}  // namespace deft
