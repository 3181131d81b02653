// SPDX-License-Identifier: Apache-2.0
// 13_own_operation.cpp: operations that the library does not have: swish, of each element, and
// running_sum, which has an algorithm of its own; both with a gradient.
//
//     x ── swish ── running_sum ── sum ── loss
//
// prints: loss 4.16
// same losses: 0.011
// prints: slope 2.22 1.86 1.09
#include <cstdio>
#include <deft/deft.hpp>
#include <numeric>

namespace ext = deft::ext;  // what operations are written with

// y = x * sigmoid(x): one body for scalars and packs.
struct swish_op : deft::op::elementwise<1, ext::typing::floating> {
  static constexpr std::string_view name = "swish";

  template <ext::num::value V>
  DEFT_HD V operator()(V x) const {
    return x * deft::op::sigmoid()(x);
  }

  template <class N>
  static auto grad(const N& n, deft::any_tensor dz) {
    auto s = sigmoid(n.template in<0>());
    return dz * (s + n.out() * (1 - s));
  }
};
template <ext::expression X>
auto swish(const X& x, ext::source_location w = ext::here()) {
  return ext::make<swish_op>(w, x);
}

// Sums of the elements up to each, from the front or from the back.
struct running_sum_op {
  static constexpr std::string_view name = "running_sum";
  static constexpr int arity = 1;
  bool reverse = false;
  static constexpr auto fields = ext::field_list(ext::field{"reverse", &running_sum_op::reverse});

  ext::tensor_type infer(std::span<const ext::tensor_type> in) const {
    if (in[0].shape.rank() != 1)
      ext::fail(deft::errc::invalid_argument, "[running_sum] expects rank 1, and got ", in[0]);
    return in[0];
  }

  static constexpr ext::dtype_set kernel_types = ext::floating_dtypes;
  template <class T>
  void compute(const ext::kernel_arguments& a) const {
    std::span<const T> x = a.in<T>(0);
    std::span<T> y = a.out<T>();
    if (reverse)
      std::partial_sum(x.rbegin(), x.rend(), y.rbegin());
    else
      std::partial_sum(x.begin(), x.end(), y.begin());
  }

  template <class N>
  static auto grad(const N& n, deft::any_tensor dz) {
    return ext::make_node(running_sum_op{!n.attr().reverse}, {}, dz);
  }
};
template <ext::typed_expression X>
auto running_sum(const X& x, ext::source_location w = ext::here()) {
  return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
      ext::make_node(running_sum_op{}, w, x));
}

int main() {
  using namespace deft;
  placeholder<float, 3> x("x");
  tensor<float> loss = sum(running_sum(swish(x)));
  auto [slope] = gradients(loss, x);

  session s;
  auto [value, d] = s.run(loss, slope, x = {0.5f, 1.f, 2.f});
  std::printf("loss %.2f\nslope %.2f %.2f %.2f\n", value, d(0), d(1), d(2));
}
