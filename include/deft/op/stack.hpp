// SPDX-License-Identifier: Apache-2.0
// deft/op/stack.hpp: tensors of one shape along a new axis; a concat of what expand_dims gives.
#pragma once
#include <deft/op/concat.hpp>
#include <deft/op/expand_dims.hpp>
#include <span>

namespace deft::op {
struct stack;  ///< a concat; only messages use this name
}

namespace deft {

namespace detail {
template <int A, class First, class... Rest>
struct stacked : typed_shape<stacked<A, First, Rest...>> {
  static constexpr bool make(dims& out) {
    dims all = First::value;
    const int axis = normalize_axis(A, all.n + 1);
    if (axis < 0 || all.n + 1 > max_rank) return false;
    const bool agree = (op::unify(all, Rest::value, all) && ...);
    dims at;
    at.push_back(axis);
    out = op::with_axes(all, at);
    out.e[axis] = 1 + std::int64_t{sizeof...(Rest)};
    return agree;
  }
};
template <int A, class... Shape>
inline constexpr bool can_stack = stacked<A, Shape...>::possible;

any_tensor add_stack(std::int64_t axis, std::span<const any_tensor> parts, source_location w);
}  // namespace detail

/// The tensors along a new axis, numbered as in the result: `stack(axis<1>, a, b, c)` of three
/// (?,4) is (?,3,4). Dtypes and shapes must agree; if they do not, it is a compile error where the
/// types show it, and throws invalid_argument otherwise.
template <int A, ext::expression X, ext::expression... Rest, class K = ext::kernels_for<X>>
auto stack(axis_t<A>, const X& x, const Rest&... rest) {
  if constexpr (ext::typed_expression<X> && (ext::typed_expression<Rest> && ...)) {
    if constexpr (!detail::one_value_type<X, Rest...> ||
                  !detail::can_stack<A, ext::shape_type_of<X>, ext::shape_type_of<Rest>...>) {
      static_assert(detail::takes<op::stack, axis_t<A>, detail::got<X>, detail::got<Rest>...>,
                    "[stack] expects an axis of the result, and tensors of one dtype and shape");
      return detail::refused();
    } else {
      const any_tensor parts[] = {any_tensor(detail::any_lower<K>(x, {})),
                                  any_tensor(detail::any_lower<K>(rest, {}))...};
      return ext::tensor_of<ext::value_type_of<X>,
                            detail::stacked<A, ext::shape_type_of<X>, ext::shape_type_of<Rest>...>>(
          detail::add_stack(A, parts, {}).handle());
    }
  } else {
    const any_tensor parts[] = {any_tensor(detail::any_lower<K>(x, {})),
                                any_tensor(detail::any_lower<K>(rest, {}))...};
    return detail::add_stack(A, parts, {});
  }
}
/// The same with an axis and a number of tensors known only at run time.
/// Throws invalid_argument if the axis is out of range, or if dtypes or shapes differ.
any_tensor stack(const axes& axis, std::span<const any_tensor> parts,
                 ext::source_location w = ext::here());
/// The same of tensors of one type, at least one: the new axis is dyn, or the result an any_tensor
/// if they are such.
template <int A, ext::expression X>
auto stack(axis_t<A>, const std::vector<X>& parts, ext::source_location w = ext::here()) {
  const std::vector<any_tensor> all(parts.begin(), parts.end());
  if constexpr (!ext::typed_expression<X>) {
    return stack(axes{A}, all, w);
  } else if constexpr (!detail::can_stack<A, ext::shape_type_of<X>>) {
    static_assert(detail::takes<op::stack, axis_t<A>, detail::got<X>>,
                  "[stack] expects an axis of the result, and tensors of one dtype and shape");
    return detail::refused();
  } else
    return ext::tensor_of<ext::value_type_of<X>,
                          detail::dyn_along<A, detail::stacked<A, ext::shape_type_of<X>>>>(
        stack(axes{A}, all, w).handle(), w);
}
/// @cond refused
template <int... A, class First, class... Rest>
requires(ext::operand<First> || detail::is_tensors<First> ||
         (std::same_as<First, axes> && (ext::expression<Rest> && ...))) detail::refused
    stack(const First&, const Rest&...) {
  static_assert(detail::takes<op::stack, detail::got<First>, detail::got<Rest>...>,
                "[stack] expects the axis first, and then the tensors without braces: "
                "stack(axis<0>, x, y), or stack(axis<0>, v) of a vector of tensors");
  return {};
}
template <std::size_t N, class... Rest>
detail::refused stack(const detail::listed (&)[N], const Rest&...) {
  static_assert(detail::takes<op::stack, Rest...>,
                "[stack] expects the axis first, and then the tensors without braces: "
                "stack(axis<0>, x, y), or stack(axis<0>, v) of a vector of tensors");
  return {};
}
template <int A, std::size_t N>
detail::refused stack(axis_t<A>, const detail::listed (&)[N]) {
  static_assert(detail::takes<op::stack, axis_t<A>>,
                "[stack] expects the axis first, and then the tensors without braces: "
                "stack(axis<0>, x, y), or stack(axis<0>, v) of a vector of tensors");
  return {};
}
/// @endcond

}  // namespace deft
