// SPDX-License-Identifier: Apache-2.0
// deft/op/mod.hpp: z = x % y, what is left where x / y truncates, with the sign of x; integers
// only, and a zero divisor is invalid_argument.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct mod : elementwise<2, typing::integral> {
  static constexpr std::string_view name = "mod";

  template <num::value V>
  DEFT_HD V operator()(V x, V y) const {
    return x % y;
  }
};
}  // namespace deft::op

namespace deft {
/// The remainder of x / y for each pair of integers, with the sign of x; operands as for `+`.
/// Division by zero is invalid_argument when it is computed.
template <class X, class Y>
requires operands<X, Y>
auto operator%(const X& x, const Y& y) { return make<op::mod>({}, x, y); }
}  // namespace deft
