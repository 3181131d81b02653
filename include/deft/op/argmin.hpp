// SPDX-License-Identifier: Apache-2.0
// deft/op/argmin.hpp: where along an axis the smallest element is; the first of equal ones.
#pragma once
#include <deft/op/argmax.hpp>

namespace deft::op {
struct argmin {
  static constexpr std::string_view name = "argmin";
  static constexpr int arity = 1;
  std::int64_t axis = 0;
  static constexpr auto fields = field_list(field{"axis", &argmin::axis});

  tensor_type infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op

namespace deft {

namespace detail {
any_tensor add_argmin(const any_tensor& x, const dims& given, source_location w);
}  // namespace detail

/// The index of the smallest element along one axis, as int64; the opposite of argmax. Of equal
/// elements the first counts; NaN counts as smaller than any number. Throws invalid_argument if the
/// axis has no elements.
template <ext::expression X, int A, class K = ext::kernels_for<X>>
auto argmin(const X& x, axis_t<A> a, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::is_numeric_expression<X>) {
      static_assert(detail::takes<op::argmin, detail::got<X>>,
                    "[argmin] expects a tensor of numbers, and got bool or "
                    "strings: use cast<float>(x) of bool");
      return detail::refused();
    } else if constexpr (!detail::axis_in_range<S, A>) {
      static_assert(detail::takes<op::argmin, detail::got<X>, axis_t<A>>,
                    "[argmin] expects an axis within the tensor's rank, and got another");
      return detail::refused();
    } else
      return detail::apply_typed<std::int64_t, detail::shape_without_axis<S, A>, K>(
          op::argmin{ext::normalize_axis(A, S::value.n)}, w, x);
  } else
    return detail::add_argmin(x, a.value, w);
}
/// The same with an axis known only at run time.
/// Throws invalid_argument unless `a` holds exactly one axis, in range.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor argmin(const X& x, const axes& a, ext::source_location w = ext::here()) {
  return detail::add_argmin(any_tensor(x), a.value, w);
}
/// The index of the smallest of all elements, counted row by row, as an int64 scalar.
template <ext::expression X, class K = ext::kernels_for<X>>
auto argmin(const X& x, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>)
    return argmin(reshape(x, shape<ext::extents_of<X>.elements()>, w), axis<0>, w);
  else
    return argmin(reshape(x, dims{dyn}, w), axis<0>, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::starts_with_number<Given...> ||
         sizeof...(Given) > 1) detail::refused argmin(const X&, const Given&...) {
  static_assert(
      detail::takes<op::argmin, detail::got<X>, detail::got<Given>...>,
      "[argmin] expects one axis, and neither a number nor keepdims: argmin(x, axis<1>), or "
      "argmin(x, axes{1}) where it is known only at run time; expand_dims puts the axis back");
  return {};
}
/// @endcond

}  // namespace deft
