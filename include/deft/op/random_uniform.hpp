// SPDX-License-Identifier: Apache-2.0
// deft/op/random_uniform.hpp: uniformly distributed numbers.
#pragma once
#include <cmath>
#include <deft/op/base/random.hpp>
#include <limits>

namespace deft::op {
struct random_uniform : random {
  static constexpr std::string_view name = "random_uniform";
  static constexpr int max_arity = 1;  ///< a tensor that has the shape; the attribute is then empty
  double low = 0;
  double high = 1;
  static constexpr auto fields = field_list(
      field{"shape", &random_uniform::shape}, field{"dtype", &random_uniform::type},
      field{"low", &random_uniform::low}, field{"high", &random_uniform::high},
      field{"key", &random_uniform::key}, field{"every_step", &random_uniform::every_step});

  tensor_type infer(std::span<const tensor_type> in) const;

  /// The least and the greatest T in [low, high).
  template <class T>
  T first() const {
    const T v = static_cast<T>(low);
    return v < low ? std::nextafter(v, std::numeric_limits<T>::infinity()) : v;
  }
  template <class T>
  T last() const {
    const T v = static_cast<T>(high);
    return v < high || low == high ? v : std::nextafter(v, -std::numeric_limits<T>::infinity());
  }
};
}  // namespace deft::op

namespace deft {
/// Uniform random numbers in [low, high), float or double: `random_uniform(shape<100, 10>, -1.f,
/// 1.f)`. Every run draws new ones, which depend on the graph's seed and on the operation's number
/// in the graph, or on `{.seed = 7}` as options.
/// Throws invalid_argument if low > high, if one of them or their difference is not finite as a T,
/// or if [low, high) contains no T.
template <element T = float, std::int64_t... E>
tensor<T, E...> random_uniform(shape_t<E...>, std::type_identity_t<T> low = 0,
                               std::type_identity_t<T> high = 1, const random_options& options = {},
                               source_place w = here()) {
  op::random_uniform o;
  o.low = low;
  o.high = high;
  return detail::random_tensor<T, shape_t<E...>>(o, options, w);
}
/// The same with a shape and dtype known only at run time.
any_tensor random_uniform(const dims& shape, double low, double high, dtype type = dtype::float32,
                          const random_options& options = {}, source_place w = here());

namespace detail {
/// Numbers in [0, 1) in the dtype and shape of `like`, which need not be known.
any_tensor uniform_like(const any_tensor& like, const random_options& options, source_place w);
}  // namespace detail
}  // namespace deft
