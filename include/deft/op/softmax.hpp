// SPDX-License-Identifier: Apache-2.0
// deft/op/softmax.hpp: exp(x) / sum(exp(x)) along the last axis, stable for large x.
#pragma once
#include <deft/op/argmax.hpp>

namespace deft::op {
struct softmax {
  static constexpr std::string_view name = "softmax";
  static constexpr int arity = 1;
  static constexpr op_traits traits = op_traits::keeps_axes;

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class X>
inline constexpr bool has_last_axis = extents_of<X>.n >= 1;
}  // namespace detail

/// Softmax of float or double logits along the last axis, exp(x) / sum(exp(x)), in the shape of x.
template <ext::expression X, class K = ext::kernels_for<X>>
auto softmax(const X& x, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    if constexpr (!detail::is_floating_expression<X>) {
      static_assert(
          detail::takes<op::softmax, detail::got<X>>,
          "[softmax] expects a floating tensor, and got another dtype: use cast<float>(x)");
      return detail::refused();
    } else if constexpr (!detail::has_last_axis<X>) {
      static_assert(detail::takes<op::softmax, detail::got<X>>,
                    "[softmax] expects a last axis, and got a scalar");
      return detail::refused();
    } else
      return detail::apply_typed<ext::value_type_of<X>, ext::shape_type_of<X>, K>(op::softmax{}, w,
                                                                                  x);
  } else
    return detail::apply<K>(op::softmax{}, w, x);
}

namespace detail {
/// The axes of a tensor with one in the place of the last, and the last in its place.
constexpr dims swapped_with_last(int rank, int axis) {
  dims p = op::all_axes_of(rank);
  p.e[axis] = rank - 1;
  p.e[rank - 1] = axis;
  return p;
}
/// The largest elements along axes counted from the front, which are kept with extent 1: -inf where
/// there are none. They have no gradient.
any_tensor largest_along(const any_tensor& x, const axes& along, source_location w);
/// Throws invalid_argument unless `given` is one axis of x.
any_tensor add_softmax(const any_tensor& x, const dims& given, source_location w);
any_tensor add_log_softmax(const any_tensor& x, const dims& given, source_location w);
}  // namespace detail

/// Softmax along one axis: `softmax(x, axis<0>)`.
template <ext::expression X, int A, class K = ext::kernels_for<X>>
auto softmax(const X& x, axis_t<A> a, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    if constexpr (!detail::is_floating_expression<X>) {
      static_assert(
          detail::takes<op::softmax, detail::got<X>>,
          "[softmax] expects a floating tensor, and got another dtype: use cast<float>(x)");
      return detail::refused();
    } else if constexpr (!detail::axis_in_range<ext::shape_type_of<X>, A>) {
      static_assert(detail::takes<op::softmax, detail::got<X>, axis_t<A>>,
                    "[softmax] expects an axis within the tensor's rank, and got another");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
          detail::add_softmax(any_tensor(detail::any_lower<K>(x, w)), a.value, w).handle());
  } else
    return detail::add_softmax(x, a.value, w);
}
/// The same with an axis known only at run time.
/// Throws invalid_argument unless `a` holds exactly one axis, in range.
template <ext::expression X>
any_tensor softmax(const X& x, const axes& a, ext::source_location w = ext::here()) {
  return detail::add_softmax(any_tensor(x), a.value, w);
}
/// Softmax along one axis of the elements where `mask`, of bool, is true; the others count as -inf
/// and become 0: `softmax(scores, axis<-1>, mask)`. So do all elements of a row without any that
/// count, which passes on a gradient of 0. x and the mask are broadcast together. Errors as for
/// softmax and `where`.
template <ext::expression X, int A, ext::expression M>
auto softmax(const X& x, axis_t<A> a, const M& mask, ext::source_location w = ext::here());
/// The same with an axis known only at run time.
template <ext::expression X, ext::expression M>
auto softmax(const X& x, const axes& a, const M& mask, ext::source_location w = ext::here());
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::starts_with_number<Given...>) detail::refused
    softmax(const X&, const Given&...) {
  static_assert(detail::takes<op::softmax, detail::got<X>, detail::got<Given>...>,
                "[softmax] expects an axis, and got a number: softmax(x, axis<1>), or softmax(x, "
                "axes{1}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft

#include <deft/op/mul.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/where.hpp>
#include <limits>

namespace deft {
namespace detail {
template <class X, class A, class M>
auto masked_softmax(const X& x, const A& a, const M& mask, source_location w) {
  constexpr float least = -std::numeric_limits<float>::infinity();
  return where(mask, softmax(where(mask, x, least, w), a, w), 0, w);
}
}  // namespace detail

template <ext::expression X, int A, ext::expression M>
auto softmax(const X& x, axis_t<A> a, const M& mask, ext::source_location w) {
  return detail::masked_softmax(x, a, mask, w);
}
template <ext::expression X, ext::expression M>
auto softmax(const X& x, const axes& a, const M& mask, ext::source_location w) {
  return detail::masked_softmax(x, a, mask, w);
}
}  // namespace deft

template <class N>
auto deft::op::softmax::grad(const N& n, any_tensor dz) {
  any_tensor y = n.out();
  return y * (dz - deft::sum(dz * y, deft::axis<-1>, deft::keepdims));
}
