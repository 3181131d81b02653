// SPDX-License-Identifier: Apache-2.0
// deft/op/random_uniform.hpp: uniformly distributed numbers.
#pragma once
#include <cmath>
#include <deft/op/base/random.hpp>
#include <limits>

namespace deft::op {
struct random_uniform : random {
  static constexpr std::string_view name = "random_uniform";
  double low = 0;
  double high = 1;
  static constexpr auto fields = field_list(
      field{"shape", &random_uniform::shape}, field{"dtype", &random_uniform::type},
      field{"low", &random_uniform::low}, field{"high", &random_uniform::high},
      field{"key", &random_uniform::key}, field{"every_step", &random_uniform::every_step});

  tensor_type infer(std::span<const tensor_type> in) const;

  /// The least and the greatest number of its dtype in [low, high), as a T.
  template <class T>
  T first() const {
    return visit_dtype_in<floating_dtypes>(type, [this]<class E>() {
      const E v = static_cast<E>(low);
      return static_cast<T>(static_cast<double>(v) < low ? next(v, true) : v);
    });
  }
  template <class T>
  T last() const {
    return visit_dtype_in<floating_dtypes>(type, [this]<class E>() {
      const E v = static_cast<E>(high);
      return static_cast<T>(static_cast<double>(v) < high || low == high ? v : next(v, false));
    });
  }

 private:
  /// The next E above or below.
  template <class E>
  static E next(E v, bool up) {
    if constexpr (is_half_type<E>) {
      if (v == 0) return E::from_bits(up ? 0x0001 : 0x8001);
      return E::from_bits(static_cast<std::uint16_t>(v.bits() + (up == (v > 0) ? 1 : -1)));
    } else
      return std::nextafter(v, up ? greatest_of<E> : least_of<E>);
  }
};
}  // namespace deft::op

namespace deft {
/// Uniform random numbers in [low, high), of a floating type: `random_uniform(shape<100, 10>, -1.f,
/// 1.f)`. Every run draws new ones, which depend on the graph's seed and on the operation's number
/// in the graph, or on `{.seed = 7}` as options.
/// Throws invalid_argument if low > high, if one of them or their difference is not finite as a T,
/// or if [low, high) contains no T.
template <ext::element T = float, std::int64_t... E>
requires detail::is_known<shape_t<E...>> tensor<T, E...> random_uniform(
    shape_t<E...>, std::type_identity_t<T> low = 0, std::type_identity_t<T> high = 1,
    const random_options& options = {}, ext::source_location w = ext::here()) {
  op::random_uniform o;
  o.low = low;
  o.high = high;
  return detail::random_tensor<T, shape_t<E...>>(o, options, w);
}
/// The same with extents that a run computes, as random_normal has them:
/// `random_uniform(shape<dyn>, {size_of(x)}, -1, 1)`.
template <ext::element T = float, std::int64_t... E>
requires(!detail::is_known<shape_t<E...>>) tensor<T, E...> random_uniform(
    shape_t<E...>, const detail::size_list& n, std::type_identity_t<T> low = 0,
    std::type_identity_t<T> high = 1, const random_options& options = {},
    ext::source_location w = ext::here()) {
  op::random_uniform o;
  o.low = low;
  o.high = high;
  return detail::random_sized<T, shape_t<E...>>(o, n, options, w);
}
/// @cond refused
template <ext::element T = float, std::int64_t... E, class... Rest>
requires(!detail::is_known<shape_t<E...>> &&
         (!ext::expression<Rest> && ...)) auto random_uniform(shape_t<E...>, const Rest&...) {
  return detail::refuse_unsized<op::random_uniform, shape_t<E...>>();
}
template <ext::scalar First, class... More>
requires(sizeof...(More) != 1) detail::refused random_uniform(First, const More&...) {
  static_assert(detail::takes<op::random_uniform, First, More...>,
                "[random_uniform] expects a shape first, and got numbers: random_uniform(shape<2, "
                "3>, -1.f, 1.f); random_uniform(-1., 1.) is an initializer");
  return {};
}
/// @endcond
/// In the dtype and shape of `x`, whose elements are not used: `random_uniform_like(x) < 0.9f`.
template <ext::expression X>
auto random_uniform_like(const X& x, double low = 0, double high = 1,
                         const random_options& options = {}, ext::source_location w = ext::here()) {
  op::random_uniform o;
  o.low = low;
  o.high = high;
  return detail::random_like(o, x, options, w);
}
/// The same with a shape and dtype known only at run time.
any_tensor random_uniform(const dims& shape, double low, double high, dtype type = dtype::float32,
                          const random_options& options = {}, ext::source_location w = ext::here());
}  // namespace deft
