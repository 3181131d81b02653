// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_dropout.hpp: elements that are left out at random.
#pragma once
#include <deft/op/random_uniform.hpp>
#include <deft/train/layers_common.hpp>

namespace deft {

namespace op {
struct dropout;  ///< several operations; only messages use this name
}

/// Options of dropout.
///
///     placeholder<bool> training("training");
///     auto y = dropout(x, 0.5, {.training = training});
struct dropout_options {
  training_flag training = true;           ///< otherwise the result is x
  std::optional<std::uint64_t> seed = {};  ///< of the draws, as random_options has it
};

namespace detail {
any_tensor add_dropout(const any_tensor& x, double rate, const dropout_options& options,
                       source_location w);
}

/// In training, 0 for each element with probability `rate`, and x / (1 - rate) for the others; new
/// ones are drawn in each step. (Srivastava et al.: Dropout, JMLR 15, 2014.) Throws
/// invalid_argument unless x is floating and 0 <= rate < 1.
template <ext::expression X, class K = ext::kernels_for<X>>
auto dropout(const X& x, double rate, const dropout_options& options = {},
             ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>)
    return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
        detail::add_dropout(any_tensor(detail::any_lower<K>(x, w)), rate, options, w).handle());
  else
    return detail::add_dropout(any_tensor(x), rate, options, w);
}
/// @cond refused
template <ext::expression X>
detail::refused dropout(const X& x, const dropout_options&) {
  return dropout(x);
}
template <ext::expression X, ext::operand... Given>
requires(sizeof...(Given) == 0 || sizeof...(Given) == 2) detail::refused
    dropout(const X&, const Given&...) {
  static_assert(detail::takes<op::dropout, detail::got<X>, detail::got<Given>...>,
                "[dropout] expects a rate, and whether it trains among the options: dropout(x, "
                "0.5), dropout(x, 0.5, {.training = training})");
  return {};
}
/// @endcond

}  // namespace deft
