// SPDX-License-Identifier: Apache-2.0
// deft/expr/sentences.hpp: compile-time messages for operands that an elementwise operation does
// not accept. An assertion's text must be a literal, so the names of operations are repeated here;
// others, such as a program's own, appear as [elementwise].
#pragma once
#pragma GCC system_header  // In others g++ quotes the macro below wherever it is used.
#include <deft/expr/traits.hpp>
#include <string_view>

namespace deft::detail {

enum class mistake {
  none,
  operation,
  literal,
  dtypes,
  numbers,
  integers,
  floats,
  bools,
  strings,
  condition,
  shapes
};

/// Says what is wrong with the operands `Got` of `Op`, and is an error.
template <mistake M, class Op, class... Got>
constexpr void refuse() {
  constexpr std::string_view name = Op::name;
#define DEFT_SENTENCES(OP, OTHERWISE)                                                            \
  if constexpr (name == OP || OTHERWISE) {                                                       \
    if constexpr (M == mistake::operation)                                                       \
      static_assert(takes<Op, Got...>,                                                           \
                    "[" OP "] expects tensors, and got an operation, which yields no value");    \
    if constexpr (M == mistake::literal)                                                         \
      static_assert(takes<Op, Got...>,                                                           \
                    "[" OP                                                                       \
                    "] expects a literal that fits the dtype of the tensor next to it: a "       \
                    "floating literal needs a floating tensor, and bool needs bool");            \
    if constexpr (M == mistake::dtypes)                                                          \
      static_assert(takes<Op, Got...>,                                                           \
                    "[" OP "] expects operands of one dtype, and got several: use cast<T>(x)");  \
    if constexpr (M == mistake::numbers)                                                         \
      static_assert(takes<Op, Got...>,                                                           \
                    "[" OP "] expects numbers, and got bool: use cast<float>(x)");               \
    if constexpr (M == mistake::integers)                                                        \
      static_assert(takes<Op, Got...>, "[" OP "] expects integers, and got another dtype");      \
    if constexpr (M == mistake::floats)                                                          \
      static_assert(takes<Op, Got...>,                                                           \
                    "[" OP                                                                       \
                    "] expects float or double, and got another dtype: use cast<float>(x)");     \
    if constexpr (M == mistake::bools)                                                           \
      static_assert(takes<Op, Got...>,                                                           \
                    "[" OP "] expects bool, and got another dtype: compare with 0");             \
    if constexpr (M == mistake::strings)                                                         \
      static_assert(takes<Op, Got...>,                                                           \
                    "[" OP "] is not defined for strings: == and != compare them");              \
    if constexpr (M == mistake::condition)                                                       \
      static_assert(takes<Op, Got...>,                                                           \
                    "[" OP "] expects a bool condition, and got another dtype: compare with 0"); \
    if constexpr (M == mistake::shapes)                                                          \
      static_assert(takes<Op, Got...>,                                                           \
                    "[" OP "] the operands' shapes cannot be broadcast together");               \
  }
  DEFT_SENTENCES("add", false)
  else DEFT_SENTENCES("sub", false)
  else DEFT_SENTENCES("mul", false)
  else DEFT_SENTENCES("div", false)
  else DEFT_SENTENCES("mod", false)
  else DEFT_SENTENCES("neg", false)
  else DEFT_SENTENCES("equal", false)
  else DEFT_SENTENCES("not_equal", false)
  else DEFT_SENTENCES("less", false)
  else DEFT_SENTENCES("less_equal", false)
  else DEFT_SENTENCES("greater", false)
  else DEFT_SENTENCES("greater_equal", false)
  else DEFT_SENTENCES("logical_and", false)
  else DEFT_SENTENCES("logical_or", false)
  else DEFT_SENTENCES("logical_not", false)
  else DEFT_SENTENCES("where", false)
  else DEFT_SENTENCES("cast", false)
  else DEFT_SENTENCES("exp", false)
  else DEFT_SENTENCES("expm1", false)
  else DEFT_SENTENCES("log", false)
  else DEFT_SENTENCES("tanh", false)
  else DEFT_SENTENCES("sigmoid", false)
  else DEFT_SENTENCES("relu", false)
  else DEFT_SENTENCES("square", false)
  else DEFT_SENTENCES("sqrt", false)
  else DEFT_SENTENCES("maximum", false)
  else DEFT_SENTENCES("minimum", false)
  else DEFT_SENTENCES("abs", false)
  else DEFT_SENTENCES("sign", false)
  else DEFT_SENTENCES("floor", false)
  else DEFT_SENTENCES("pow", false)
  else DEFT_SENTENCES("sin", false)
  else DEFT_SENTENCES("cos", false)
  else DEFT_SENTENCES("log1p", false)
  else DEFT_SENTENCES("erf", false)
  else DEFT_SENTENCES("normal_cdf", false)
  else DEFT_SENTENCES("gelu", false)
  else DEFT_SENTENCES("silu", false)
  else DEFT_SENTENCES("softplus", false)
  else DEFT_SENTENCES("sigmoid_cross_entropy", false)
  else DEFT_SENTENCES("reciprocal", false)
  else DEFT_SENTENCES("rsqrt", false)
  else DEFT_SENTENCES("elu", false)
  else DEFT_SENTENCES("leaky_relu", false)
  else DEFT_SENTENCES("isnan", false)
  else DEFT_SENTENCES("isinf", false)
  else DEFT_SENTENCES("isfinite", false)
  else DEFT_SENTENCES("logsumexp", false)
  else DEFT_SENTENCES("variance", false)
  else DEFT_SENTENCES("standard_deviation", false)
  else DEFT_SENTENCES("reduce_any", false)
  else DEFT_SENTENCES("reduce_all", false)
  else DEFT_SENTENCES("elementwise", true)
#undef DEFT_SENTENCES
}

}  // namespace deft::detail
