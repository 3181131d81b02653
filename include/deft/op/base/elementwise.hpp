// SPDX-License-Identifier: Apache-2.0
// deft/op/base/elementwise.hpp: what every elementwise operation is derived from.
#pragma once
#include <deft/core/num.hpp>
#include <deft/expr/tensor.hpp>
#include <string_view>
#include <tuple>

namespace deft::op {

/// An elementwise operation of N operands. The derived type states its name, one body
/// `template <num::value V> DEFT_HD V operator()(V…) const` for all value types of core/num.hpp,
/// and its gradient.
template <int N, typing Rule = typing::arithmetic>
struct elementwise {
  static constexpr int arity = N;
  static constexpr op_traits traits = op_traits::elementwise;
  static constexpr typing typing_rule = Rule;
  static constexpr int first_value =
      Rule == typing::select ? 1 : 0;  ///< operand that literals follow

 private:
  template <class T, class...>
  struct head {
    using type = T;
  };
  template <class T, class U, class... Rest>
  struct second {
    using type = U;
  };

 public:
  /// Element type of the result.
  template <class... T>
  using result = std::conditional_t<
      Rule == typing::comparison || Rule == typing::equality || Rule == typing::matching, bool,
      typename std::conditional_t<Rule == typing::select, second<T..., void>, head<T...>>::type>;
  template <class T, class... Rest>
  static constexpr bool agree = [] {
    if constexpr (Rule == typing::select) {
      return [](auto* first, auto*... others) {
        return (std::is_same_v<decltype(first), decltype(others)> && ...);
      }(static_cast<Rest*>(nullptr)...);
    } else
      return (std::is_same_v<T, Rest> && ...);
  }();
  template <class... T>
  static constexpr bool accepts_types = [] {
    constexpr dtype types[] = {dtype_of<T>...};
    return (Rule != typing::select || types[0] == dtype::boolean) &&
           accepts(Rule, types[first_value]);
  }();
};

}  // namespace deft::op
