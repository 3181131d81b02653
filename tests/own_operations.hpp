// SPDX-License-Identifier: Apache-2.0
// tests/own_operations.hpp: operations that the library has not, as a program writes its own.
#pragma once
#include <deft/expr.hpp>
#include <memory>

namespace deft::ext {
class kernel;
}

namespace testing {

struct swish : deft::op::elementwise<1, deft::ext::typing::floating> {
  static constexpr std::string_view name = "test_swish";

  template <deft::ext::num::value V>
  DEFT_HD V operator()(V x) const {
    return V(0.5) * x * (1 + deft::ext::num::tanh(V(0.5) * x));
  }

  template <class N>
  static auto grad(const N& n, deft::any_tensor dz) {
    auto x = n.template in<0>();
    auto s = sigmoid(x);
    return dz * (s + n.out() * (1 - s));
  }
};
/// x * sigmoid(x) of each element.
template <deft::ext::expression X>
auto make_swish(const X& x, deft::ext::source_location w = deft::ext::here()) {
  return deft::ext::make<swish>(w, x);
}

/// z = a, but c times b where a is negative: three operands, and a gradient that uses itself.
struct leak : deft::op::elementwise<3> {
  static constexpr std::string_view name = "test_leak";

  template <deft::ext::num::value V>
  DEFT_HD V operator()(V a, V b, V c) const {
    return deft::ext::num::maximum(a, V(0)) + b * c * deft::ext::num::minimum(a, V(0));
  }

  template <class N>
  static auto grad(const N& n, deft::any_tensor dz);
};
template <class A, class B, class C>
auto make_leak(const A& a, const B& b, const C& c,
               deft::ext::source_location w = deft::ext::here()) {
  return deft::ext::make<leak>(w, a, b, c);
}
template <class N>
auto leak::grad(const N& n, deft::any_tensor dz) {
  auto a = n.template in<0>(), b = n.template in<1>(), c = n.template in<2>();
  auto negative = minimum(a, 0);
  return std::tuple{where(a > 0, dz, dz * b * c), make_leak(negative, c, dz),
                    make_leak(negative, b, dz)};
}

/// Running sums along the last axis, from the front or from the back.
struct running_sum {
  static constexpr std::string_view name = "test_running_sum";
  static constexpr int arity = 1;
  static constexpr deft::ext::dtype_set kernel_types = deft::ext::numeric_dtypes;
  bool reverse = false;
  static constexpr auto fields =
      deft::ext::field_list(deft::ext::field{"reverse", &running_sum::reverse});

  deft::ext::tensor_type infer(std::span<const deft::ext::tensor_type> in) const {
    if (in[0].shape.rank() == 0)
      deft::ext::fail(deft::errc::invalid_argument, "[", name, "] expects a last axis");
    return in[0];
  }
  template <class T>
  void compute(const deft::ext::kernel_arguments& a) const {
    auto x = a.in<T>(0);
    auto y = a.out<T>();
    const auto n = static_cast<std::size_t>(a.in_type(0).shape.back());
    for (std::size_t row = 0; row < x.size(); row += n) {
      T sum{};
      for (std::size_t k = 0; k < n; ++k) {
        const std::size_t i = row + (reverse ? n - 1 - k : k);
        y[i] = sum = static_cast<T>(sum + x[i]);
      }
    }
  }
  template <class N>
  static auto grad(const N& n, deft::any_tensor dz) {
    return deft::ext::make_node(running_sum{!n.attr().reverse}, {}, dz);
  }
};
template <deft::ext::expression X>
auto make_running_sum(const X& x, bool reverse = false,
                      deft::ext::source_location w = deft::ext::here()) {
  deft::any_tensor y = deft::ext::make_node(running_sum{reverse}, w, x);
  if constexpr (deft::ext::typed_expression<X>)
    return deft::ext::tensor_of<deft::ext::value_type_of<X>, deft::ext::shape_type_of<X>>(y);
  else
    return y;
}

/// Half of each element, by a kernel of its own class; defined where deft/deft.hpp is seen.
struct halve {
  static constexpr std::string_view name = "test_halve";
  static constexpr int arity = 1;
  static constexpr deft::ext::dtype_set kernel_types{deft::dtype::float32};

  deft::ext::tensor_type infer(std::span<const deft::ext::tensor_type> in) const { return in[0]; }
  static std::unique_ptr<deft::ext::kernel> make_kernel(const deft::ext::node_def& n,
                                                        std::span<const deft::ext::tensor_type> in);
};
template <class X>
auto make_halve(const X& x, deft::ext::source_location w = deft::ext::here()) {
  return deft::ext::tensor_of<float, deft::ext::shape_type_of<X>>(
      deft::ext::make_node(halve{}, w, x));
}

}  // namespace testing
