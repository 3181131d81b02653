// SPDX-License-Identifier: Apache-2.0
// tests/link/sides.hpp: what a file that sees deft/expr.hpp only and one that sees deft/deft.hpp
// both write, so that the linker keeps one of each function that they share.
#pragma once

using vector4 = deft::tensor<float, 4>;
constexpr int ways = 6;

/// An expression of its own for each way of lowering one.
template <int Way>
auto written(const vector4& x) {
  if constexpr (Way == 0)
    return relu(x * 2) + 1;
  else if constexpr (Way == 1)
    return tanh(x * 2) + 1;
  else if constexpr (Way == 2)
    return exp(x * 2) + 1;
  else if constexpr (Way == 3)
    return sigmoid(x * 2) + 1;
  else if constexpr (Way == 4)
    return square(x * 2) + 1;
  else
    return maximum(x * 2, 0) + 1;
}

deft::ext::output expr_side(const vector4& x, const deft::variable<float, 4>& v, int way);
deft::ext::output deft_side(const vector4& x, const deft::variable<float, 4>& v, int way);
/// An expression that is written in the file that sees deft/expr.hpp only.
deft::ext::output expr_side_alone(const vector4& x);
