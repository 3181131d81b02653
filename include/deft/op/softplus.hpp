// SPDX-License-Identifier: Apache-2.0
// deft/op/softplus.hpp: y = log(1 + exp(x)), stable for large |x|.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct softplus : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "softplus";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::maximum(x, 0) + num::log1p(num::exp(-num::abs(x)));
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// log(1 + exp(x)) of each element, float or double.
template <ext::expression X>
auto softplus(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::softplus>(w, x);
}
}  // namespace deft

#include <deft/op/mul.hpp>
#include <deft/op/sigmoid.hpp>
template <class N>
auto deft::op::softplus::grad(const N& n, any_tensor dz) {
  return dz * deft::sigmoid(n.template in<0>());
}
