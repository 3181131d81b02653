// SPDX-License-Identifier: Apache-2.0
// deft/op/reshape.hpp: the same elements in another shape.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct reshape {
  static constexpr std::string_view name = "reshape";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::alias;
  static constexpr int max_arity = 2;  ///< x, and what has extents that are wanted
  /// Extents; `dyn`, once, follows from the number of elements; extent_of(i) is that of axis i of
  /// x, or of the second input. Empty where a second input has the whole shape.
  dims to;
  static constexpr auto fields = field_list(field{"shape", &reshape::to});

  static constexpr std::int64_t extent_of(int i) { return -2 - i; }

  enum class fault { none, extent, several, elements };
  /// The shape rule.
  constexpr fault shape(const dims& x, dims& out) const {
    out = {};
    int inferred = -1;
    for (auto e : to) {
      if (e < dyn) {
        if (-2 - e >= x.n) return fault::extent;
        e = x.e[-2 - e];
      } else if (e == dyn) {
        if (inferred >= 0) return fault::several;
        inferred = out.n;
      }
      out.push_back(e);
    }
    if (!is_sound(out) || !is_sound(x)) return fault::extent;
    // Extents that both have are left out, so that what is not known cancels.
    bool x_known = true, out_known = true;
    std::int64_t from = 1, into = 1;
    bool used[max_rank] = {};
    for (int i = 0; i < out.n; ++i)
      if (to.e[i] < dyn && !used[-2 - to.e[i]])
        used[-2 - to.e[i]] = true;
      else if (i != inferred)
        out.e[i] == dyn ? void(out_known = false) : void(into *= out.e[i]);
    for (int i = 0; i < x.n; ++i)
      if (!used[i]) x.e[i] == dyn ? void(x_known = false) : void(from *= x.e[i]);
    if (!x_known || !out_known) return fault::none;
    if (inferred < 0) return from == into ? fault::none : fault::elements;
    if (into == 0 || from % into != 0) return fault::elements;
    out.e[inferred] = from / into;
    return fault::none;
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class From, class To>
struct reshaped : typed_shape<reshaped<From, To>> {
  static constexpr op::reshape::fault apply(dims& out) {
    return op::reshape{To::value}.shape(From::value, out);
  }
  static constexpr bool make(dims& out) { return apply(out) == op::reshape::fault::none; }
  static constexpr op::reshape::fault fault = [] {
    dims d;
    return apply(d);
  }();
};
template <class From, class To>
inline constexpr bool one_dyn_at_most = reshaped<From, To>::fault != op::reshape::fault::several;

/// `x` with the axes `added` (ascending, in range of the result) of extent 1.
any_tensor expand(const any_tensor& x, const dims& added, source_location w = {});
/// `x` with `count` axes from `first` on as one; a new one of extent 1 if they are none.
any_tensor merge_axes(const any_tensor& x, int first, int count, source_location w = {});
/// `x` in the shape `to`, whose extents may be op::reshape::extent_of.
any_tensor add_reshape(const any_tensor& x, const dims& to, source_location w);
}  // namespace detail

/// The elements of x in row-major order, in the shape `to`. One extent may be `dyn`: it follows
/// from the number of elements. Throws invalid_argument if the numbers of elements differ, or if an
/// extent is negative.
any_tensor reshape(const any_tensor& x, const dims& to, ext::source_location w = ext::here());

/// The same with a shape known at compile time: `reshape(x, shape<dyn, 784>)`.
template <ext::expression X, std::int64_t... E, class K = ext::kernels_for<X>>
auto reshape(const X& x, shape_t<E...> to, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using From = ext::shape_type_of<X>;
    using To = shape_t<E...>;
    if constexpr (!detail::one_dyn_at_most<From, To>) {
      static_assert(detail::takes<op::reshape, detail::got<X>, To>,
                    "[reshape] expects one dyn extent at most, and got several");
      return detail::refused();
    } else if constexpr (!detail::reshaped<From, To>::possible) {
      static_assert(detail::takes<op::reshape, detail::got<X>, To>,
                    "[reshape] expects a shape of as many elements as there are, and got another");
      return detail::refused();
    } else
      return detail::apply_typed<ext::value_type_of<X>, detail::reshaped<From, To>, K>(
          op::reshape{to.value}, w, x);
  } else
    return reshape(x, to.value, w);
}

namespace detail {
/// Uses only the shape of `like` where at most one extent is unknown, so that `like` need not be
/// computed.
any_tensor reshape_like(const any_tensor& x, const any_tensor& like, source_location w);
/// The elements of x in the shape of `like` but for the last extent, which is `last`.
any_tensor reshape_rows(const any_tensor& x, const any_tensor& like, std::int64_t last,
                        source_location w);
}  // namespace detail

/// The elements of x in the shape of `like`. Throws invalid_argument if their numbers differ.
template <ext::expression X, ext::expression Like, class K = ext::kernels_for<X>>
auto reshape(const X& x, const Like& like, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<Like>)
    return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<Like>>(
        detail::reshape_like(any_tensor(x), any_tensor(like), w).handle());
  else
    return detail::reshape_like(any_tensor(x), any_tensor(like), w);
}
/// @cond refused
template <std::int64_t... E, ext::expression X, class... Given>
requires(sizeof...(E) > 0 || sizeof...(Given) == 0 ||
         detail::starts_without_shape<Given...>) detail::refused
    reshape(const X&, const Given&...) {
  static_assert(
      detail::takes<op::reshape, detail::got<X>, detail::got<Given>...>,
      "[reshape] expects a shape, and got none, or something else: reshape(x, shape<dyn, 3>), "
      "or reshape(x, {n, 3}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft

template <class N>
auto deft::op::reshape::grad(const N& n, any_tensor dz) {
  return deft::reshape(dz, n.template in<0>());
}
