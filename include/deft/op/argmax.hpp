// SPDX-License-Identifier: Apache-2.0
// deft/op/argmax.hpp: where along an axis the largest element is; the first of equal ones.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
struct argmax {
  static constexpr std::string_view name = "argmax";
  static constexpr int arity = 1;
  std::int64_t axis = 0;
  static constexpr auto fields = field_list(field{"axis", &argmax::axis});

  tensor_type infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class X>
inline constexpr bool argmax_takes = is_numeric_expression<X>;
template <class Shape, int A>
inline constexpr bool axis_in_range = normalize_axis(A, Shape::value.n) >= 0;
template <class Shape, int A>
struct shape_without_axis {
  static constexpr dims value = op::without_axis(Shape::value, normalize_axis(A, Shape::value.n));
};
any_tensor add_argmax(const any_tensor& x, const dims& given, source_place w);
}  // namespace detail

/// The index of the largest element along one axis, as int64: `argmax(logits, axis<1>)`. The first
/// of equal ones; the first NaN, if there is one.
template <expression X, int A, class K = kernels_for<X>>
auto argmax(const X& x, axis_t<A> a, source_place w = here()) {
  if constexpr (typed_expression<X>) {
    using S = shape_type_of<X>;
    static_assert(detail::argmax_takes<X>, "[argmax] expects a tensor of numbers, and got bool");
    static_assert(detail::axis_in_range<S, A>,
                  "[argmax] expects an axis within the tensor's rank, and got another");
    if constexpr (detail::axis_in_range<S, A>)
      return detail::apply_typed<std::int64_t, detail::shape_without_axis<S, A>, K>(
          op::argmax{normalize_axis(A, S::value.n)}, w, x);
  } else
    return detail::add_argmax(x, a.value, w);
}
/// The same where run time tells the axis.
/// Throws invalid_argument unless it is one, in range.
template <expression X, class K = kernels_for<X>>
any_tensor argmax(const X& x, const axes& a, source_place w = here()) {
  return detail::add_argmax(any_tensor(x), a.value, w);
}

}  // namespace deft
