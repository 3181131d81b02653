// SPDX-License-Identifier: Apache-2.0
// deft/op/broadcast_to.hpp: repeats elements along axes of extent 1, and along new ones in front.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct broadcast_to {
  static constexpr std::string_view name = "broadcast_to";
  static constexpr int arity = 1;
  static constexpr int max_arity = 2;  ///< x, and a tensor of the target shape, or its extents
  static constexpr op_traits traits = op_traits::repeats;
  /// Extents; `dyn` keeps what x has there, or is what a second input says, as op::extents yields
  /// it. Empty where a second input has the shape.
  dims to;
  static constexpr auto fields = field_list(field{"shape", &broadcast_to::to});

  /// The shape rule; false if x cannot be broadcast to it.
  constexpr bool shape(const dims& x, dims& out) const {
    out = to;
    if (x.n > to.n) return false;
    for (int i = 1; i <= to.n; ++i) {
      std::int64_t& e = out.e[to.n - i];
      if (i > x.n) {
        if (e == dyn) return false;
        continue;
      }
      std::int64_t from = x.e[x.n - i];
      if (e == dyn)
        e = from;
      else if (from != 1 && from != dyn && from != e)
        return false;
    }
    return true;
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class From, class To>
struct broadcast_to_shape : typed_shape<broadcast_to_shape<From, To>> {
  static constexpr bool make(dims& out) {
    return op::broadcast_to{To::value}.shape(From::value, out);
  }
};
template <class From, class To>
inline constexpr bool can_broadcast_to = broadcast_to_shape<From, To>::possible;
template <class From, class To>
inline constexpr bool may_broadcast_to = [] {
  dims d;
  return broadcast(From::value, To::value, d) && may_equal(d, To::value);
}();
}  // namespace detail

/// x broadcast to the shape `to`, where `dyn` keeps x's extent.
/// Throws invalid_argument if an extent of x is neither 1 nor that of `to`.
any_tensor broadcast_to(const any_tensor& x, const dims& to, ext::source_location w = ext::here());

/// The same with a shape known at compile time: `broadcast_to(x, shape<100, 10>)`.
template <ext::expression X, std::int64_t... E, class K = ext::kernels_for<X>>
auto broadcast_to(const X& x, shape_t<E...> to, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using From = ext::shape_type_of<X>;
    using To = shape_t<E...>;
    if constexpr (!detail::can_broadcast_to<From, To>) {
      static_assert(detail::takes<op::broadcast_to, detail::got<X>, To>,
                    "[broadcast_to] expects extents of 1 where it repeats, and got others");
      return detail::refused();
    } else
      return detail::apply_typed<ext::value_type_of<X>, detail::broadcast_to_shape<From, To>, K>(
          op::broadcast_to{to.value}, w, x);
  } else
    return broadcast_to(x, to.value, w);
}

namespace detail {
/// Uses only the shape of `like` where it is static, so that `like` need not be computed.
any_tensor broadcast_like(const any_tensor& x, const any_tensor& like, source_location w);
}  // namespace detail

/// x broadcast to the shape of `like`.
/// Throws invalid_argument if an extent of x is neither 1 nor that of `like`.
template <ext::expression X, ext::expression Like, class K = ext::kernels_for<X>>
auto broadcast_to(const X& x, const Like& like, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<Like>) {
    using To = ext::shape_type_of<Like>;
    if constexpr (!detail::may_broadcast_to<ext::shape_type_of<X>, To>) {
      static_assert(detail::takes<op::broadcast_to, detail::got<X>, detail::got<Like>>,
                    "[broadcast_to] expects extents of 1 where it repeats, and got others");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, To>(
          detail::broadcast_like(any_tensor(x), any_tensor(like), w).handle());
  } else
    return detail::broadcast_like(any_tensor(x), any_tensor(like), w);
}
/// @cond refused
template <std::int64_t... E, ext::expression X, class... Given>
requires(sizeof...(E) > 0 || sizeof...(Given) == 0 ||
         detail::starts_without_shape<Given...>) detail::refused
    broadcast_to(const X&, const Given&...) {
  static_assert(detail::takes<op::broadcast_to, detail::got<X>, detail::got<Given>...>,
                "[broadcast_to] expects a shape, and got none, or something else: broadcast_to(x, "
                "shape<2, 3>), or broadcast_to(x, {n, 3}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft

#include <deft/op/sum_to.hpp>
template <class N>
auto deft::op::broadcast_to::grad(const N& n, any_tensor dz) {
  return deft::sum_to(dz, n.template in<0>());
}
