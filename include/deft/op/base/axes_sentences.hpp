// SPDX-License-Identifier: Apache-2.0
// deft/op/base/axes_sentences.hpp: compile-time messages for what stands where a reduction's axes
// belong. An assertion's text must be a literal, so the names of reductions are repeated here.
#pragma once
#pragma GCC system_header  // In others g++ quotes the macro below wherever it is used.
#include <deft/op/base/shapes.hpp>

namespace deft::detail {

/// An error that says what is wrong with the axes, or with what is where they belong.
template <class Op, class X, class... A>
constexpr void refuse_axes() {
  constexpr bool number = sizeof...(A) == 0 || (number_or_text<A> || ...);
  constexpr bool tensor = (expression<A> || ...);
  constexpr std::string_view name = Op::name;
#define DEFT_SENTENCES(OP, OF_TENSORS, OF_NUMBERS)                                             \
  if constexpr (name == OP) {                                                                  \
    if constexpr (tensor)                                                                      \
      static_assert(takes<Op, X, A...>, "[" OP "] expects axes, and got a tensor" OF_TENSORS); \
    else if constexpr (number)                                                                 \
      static_assert(takes<Op, X, A...>,                                                        \
                    "[" OP "] expects axes, and got a number: " OP "(x, axis<0>), " OP         \
                    "(x, axis<0>, keepdims), or " OP                                           \
                    "(x, axes{0}) where they are known only at run time" OF_NUMBERS);          \
    else                                                                                       \
      static_assert(takes<Op, X, A...>,                                                        \
                    "[" OP "] expects axes within the tensor's rank, each once");              \
  }
  DEFT_SENTENCES("sum", ": x + y adds two", "")
  else DEFT_SENTENCES("mean", ": (x + y) / 2 is the mean of two", "")
  else DEFT_SENTENCES("max", ": maximum(x, y) is elementwise", "; maximum(x, 0) is elementwise")
  else DEFT_SENTENCES("min", ": minimum(x, y) is elementwise", "; minimum(x, 0) is elementwise")
  else DEFT_SENTENCES("prod", ": x * y is elementwise", "")
  else DEFT_SENTENCES("reduce_any", ": x || y is elementwise", "")
  else DEFT_SENTENCES("reduce_all", ": x && y is elementwise", "")
  else DEFT_SENTENCES("logsumexp", "", "")
  else DEFT_SENTENCES("variance", "", "")
  else DEFT_SENTENCES("standard_deviation", "", "")
#undef DEFT_SENTENCES
}

}  // namespace deft::detail
