// SPDX-License-Identifier: Apache-2.0
// deft/op/categorical.hpp: classes drawn by their logits.
#pragma once
#include <deft/op/random_uniform.hpp>
#include <deft/op/softmax.hpp>
#include <deft/op/sort.hpp>

namespace deft::op {
/// Only messages use this name.
struct categorical {
  static constexpr std::string_view name = "categorical";
};
}  // namespace deft::op

namespace deft {

namespace detail {
/// n classes of each row, or one without an axis of its own if n is `dyn`.
any_tensor add_categorical(const any_tensor& logits, std::int64_t n, const random_options& options,
                           source_location w);
template <class X>
inline constexpr bool is_logits = has_last_axis<X>&& is_floating_expression<X>;
}  // namespace detail

/// For each row of floating logits, along the last axis, the int64 index of a class, drawn with the
/// probabilities softmax(logits): the largest of the logits after noise of Gumbel's distribution is
/// added. A class with a logit of -inf is not drawn unless all have it. Every run draws new ones,
/// which depend on the options as those of random_uniform.
template <ext::expression X, class K = ext::kernels_for<X>>
auto categorical(const X& logits, const random_options& options = {},
                 ext::source_location w = ext::here()) {
  if constexpr (!ext::typed_expression<X>) {
    return detail::add_categorical(any_tensor(logits), dyn, options, w);
  } else if constexpr (!detail::is_logits<X>) {
    static_assert(
        detail::takes<op::categorical, detail::got<X>>,
        "[categorical] expects floating logits along a last axis, and got another tensor");
    return detail::refused();
  } else
    return ext::tensor_of<std::int64_t, detail::shape_without_axis<ext::shape_type_of<X>, -1>>(
        detail::add_categorical(any_tensor(detail::any_lower<K>(logits, w)), dyn, options, w)
            .handle());
}
/// n classes of each row, along a last axis.
template <ext::expression X, class K = ext::kernels_for<X>>
auto categorical(const X& logits, std::int64_t n, const random_options& options = {},
                 ext::source_location w = ext::here()) {
  if constexpr (!ext::typed_expression<X>) {
    return detail::add_categorical(any_tensor(logits), n, options, w);
  } else if constexpr (!detail::is_logits<X>) {
    static_assert(
        detail::takes<op::categorical, detail::got<X>>,
        "[categorical] expects floating logits along a last axis, and got another tensor");
    return detail::refused();
  } else
    return ext::tensor_of<std::int64_t, detail::some_of_rows<ext::shape_type_of<X>>>(
        detail::add_categorical(any_tensor(detail::any_lower<K>(logits, w)), n, options, w)
            .handle());
}

}  // namespace deft
