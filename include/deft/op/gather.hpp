// SPDX-License-Identifier: Apache-2.0
// deft/op/gather.hpp: rows by index, as from an embedding; and its gradient, scatter_add.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct gather {
  static constexpr std::string_view name = "gather";
  static constexpr int arity = 2;  ///< params, indices

  /// The shape rule; false if `params` is a scalar or the rank would be too high.
  static constexpr bool shape(const dims& params, const dims& indices, dims& out) {
    out = indices;
    if (params.n < 1 || indices.n + params.n - 1 > max_rank) return false;
    for (int i = 1; i < params.n; ++i) out.push_back(params.e[i]);
    return true;
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};

/// Zeros of the shape of the third input, to which the rows of the first are added in order at the
/// indices in the second. Used by the gradient of gather only.
struct scatter_add {
  static constexpr std::string_view name = "scatter_add";
  static constexpr int arity = 3;  ///< dz, indices, like

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class Indices>
inline constexpr bool gathers_by = is_integer_expression<Indices> &&
                                   sizeof(value_type_of<Indices>) >= 4;
template <class P, class Indices>
struct gathered : typed_shape<gathered<P, Indices>> {
  static constexpr bool make(dims& out) { return op::gather::shape(P::value, Indices::value, out); }
};
template <class P, class Indices>
inline constexpr bool can_gather = gathered<P, Indices>::possible;
template <class P, class Indices, int A>
struct gathered_along : typed_shape<gathered_along<P, Indices, A>> {
  static constexpr bool make(dims& out) {
    const int axis = normalize_axis(A, P::value.n);
    out = {};
    if (axis < 0 || P::value.n - 1 + Indices::value.n > max_rank) return false;
    for (int i = 0; i < axis; ++i) out.push_back(P::value.e[i]);
    for (int i = 0; i < Indices::value.n; ++i) out.push_back(Indices::value.e[i]);
    for (int i = axis + 1; i < P::value.n; ++i) out.push_back(P::value.e[i]);
    return true;
  }
};
any_tensor add_gather(const output& params, const output& indices, source_location w);
any_tensor add_gather_along(const any_tensor& params, const any_tensor& indices, const dims& given,
                            source_location w);
/// The numbers 0, 1, … along an axis of x, counted from the front, of so many axes, the others of
/// extent 1.
any_tensor numbers_along(const any_tensor& x, int axis, int rank);
}  // namespace detail

/// The rows of `params` (along axis 0) at `indices`, int32 or int64: for params (V,D) and indices
/// (B,L) the result is (B,L,D). An index out of range makes the run throw out_of_range. Rows of a
/// variable are read on its device, whatever the scope, as the whole variable would be; only they
/// travel. Their gradient is made of the same rows, and so is the update of the variable: see
/// optimizer.
template <ext::expression P, ext::expression Indices, class K = ext::kernels_for<P>>
auto gather(const P& params, const Indices& indices, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<P> && ext::typed_expression<Indices>) {
    using SP = ext::shape_type_of<P>;
    using SI = ext::shape_type_of<Indices>;
    if constexpr (!detail::gathers_by<Indices>) {
      static_assert(detail::takes<op::gather, detail::got<P>, detail::got<Indices>>,
                    "[gather] expects indices of int32 or int64, and got another dtype: use "
                    "cast<std::int64_t>(i)");
      return detail::refused();
    } else if constexpr (!detail::can_gather<SP, SI>) {
      static_assert(detail::takes<op::gather, detail::got<P>, detail::got<Indices>>,
                    "[gather] expects an axis 0 to gather along and a result of rank 8 at most");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<P>, detail::gathered<SP, SI>>(
          detail::add_gather(detail::any_lower<K>(params, w), detail::any_lower<K>(indices, w), w)
              .handle());
  } else
    return detail::add_gather(detail::any_lower<K>(params, w), detail::any_lower<K>(indices, w), w);
}

/// The same along one axis: for params (A,V,D) and indices (B,L), `gather(params, indices,
/// axis<1>)` is (A,B,L,D), as of numpy.take.
template <ext::expression P, ext::expression Indices, int A, class K = ext::kernels_for<P>>
auto gather(const P& params, const Indices& indices, axis_t<A> a,
            ext::source_location w = ext::here()) {
  if constexpr (A == 0) {
    return gather(params, indices, w);
  } else if constexpr (ext::typed_expression<P> && ext::typed_expression<Indices>) {
    using shape = detail::gathered_along<ext::shape_type_of<P>, ext::shape_type_of<Indices>, A>;
    if constexpr (!detail::gathers_by<Indices>) {
      static_assert(detail::takes<op::gather, detail::got<P>, detail::got<Indices>>,
                    "[gather] expects indices of int32 or int64, and got another dtype: use "
                    "cast<std::int64_t>(i)");
      return detail::refused();
    } else if constexpr (!shape::possible) {
      static_assert(detail::takes<op::gather, detail::got<P>, detail::got<Indices>, axis_t<A>>,
                    "[gather] expects an axis of the tensor, and a result of rank 8 at most");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<P>, shape>(
          detail::add_gather_along(any_tensor(detail::any_lower<K>(params, w)),
                                   any_tensor(detail::any_lower<K>(indices, w)), a.value, w)
              .handle());
  } else
    return detail::add_gather_along(any_tensor(params), any_tensor(indices), a.value, w);
}
/// The same with an axis known only at run time.
/// Throws invalid_argument unless `a` holds exactly one axis, in range.
template <ext::expression P, ext::expression Indices>
any_tensor gather(const P& params, const Indices& indices, const axes& a,
                  ext::source_location w = ext::here()) {
  return detail::add_gather_along(any_tensor(params), any_tensor(indices), a.value, w);
}
/// @cond refused
template <ext::expression P, class... Given>
requires(sizeof...(Given) == 0 || (detail::number_or_text<Given> || ...)) detail::refused
    gather(const P&, const Given&...) {
  static_assert(
      detail::takes<op::gather, detail::got<P>, detail::got<Given>...>,
      "[gather] expects a tensor of indices, and perhaps an axis: gather(x, i), gather(x, "
      "constant({0, 2})), gather(x, i, axis<1>)");
  return {};
}
template <ext::expression P, std::size_t N>
detail::refused gather(const P&, const std::int64_t (&)[N]) {
  static_assert(
      detail::takes<op::gather, detail::got<P>>,
      "[gather] expects a tensor of indices, and perhaps an axis: gather(x, i), gather(x, "
      "constant({0, 2})), gather(x, i, axis<1>)");
  return {};
}
/// @endcond

}  // namespace deft

template <class N>
auto deft::op::gather::grad(const N& n, any_tensor dz) {
  const output in[] = {dz.handle(), n.template in<1>().handle(), n.template in<0>().handle()};
  return std::tuple{detail::apply_any(scatter_add{}, in, {}), any_tensor()};
}
template <class N>
auto deft::op::scatter_add::grad(const N& n, any_tensor dz) {
  return std::tuple{deft::gather(dz, n.template in<1>()), any_tensor(), any_tensor()};
}
