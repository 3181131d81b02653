// SPDX-License-Identifier: Apache-2.0
// deft/op/random_normal.hpp: normally distributed numbers.
#pragma once
#include <deft/op/base/random.hpp>

namespace deft::op {
struct random_normal : random {
  static constexpr std::string_view name = "random_normal";
  double mean = 0;
  double stddev = 1;
  static constexpr auto fields = field_list(
      field{"shape", &random_normal::shape}, field{"dtype", &random_normal::type},
      field{"mean", &random_normal::mean}, field{"stddev", &random_normal::stddev},
      field{"key", &random_normal::key}, field{"every_step", &random_normal::every_step});

  tensor_type infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op

namespace deft {
/// Normally distributed random numbers, float or double: `random_normal(shape<100, 10>, 0.f,
/// 0.1f)`. New in every run, seeded as random_uniform. Throws invalid_argument if stddev is
/// negative or a parameter is not finite.
template <ext::element T = float, std::int64_t... E>
requires detail::is_known<shape_t<E...>> tensor<T, E...> random_normal(
    shape_t<E...>, std::type_identity_t<T> mean = 0, std::type_identity_t<T> stddev = 1,
    const random_options& options = {}, ext::source_location w = ext::here()) {
  op::random_normal o;
  o.mean = mean;
  o.stddev = stddev;
  return detail::random_tensor<T, shape_t<E...>>(o, options, w);
}
/// The same with extents that a run computes: `random_normal(shape<dyn, 16>, {size_of(x,
/// axis<0>)})` has a row for each of x. The list gives each `dyn` extent, or all extents: numbers,
/// and int32 or int64 scalars. Throws invalid_argument, in the run for what only that knows, if one
/// is negative.
template <ext::element T = float, std::int64_t... E>
requires(!detail::is_known<shape_t<E...>>) tensor<T, E...> random_normal(
    shape_t<E...>, const detail::size_list& n, std::type_identity_t<T> mean = 0,
    std::type_identity_t<T> stddev = 1, const random_options& options = {},
    ext::source_location w = ext::here()) {
  op::random_normal o;
  o.mean = mean;
  o.stddev = stddev;
  return detail::random_sized<T, shape_t<E...>>(o, n, options, w);
}
/// @cond refused
template <ext::element T = float, std::int64_t... E, class... Rest>
requires(!detail::is_known<shape_t<E...>> &&
         (!ext::expression<Rest> && ...)) auto random_normal(shape_t<E...>, const Rest&...) {
  return detail::refuse_unsized<op::random_normal, shape_t<E...>>();
}
template <ext::scalar First, class... More>
requires(sizeof...(More) != 1) detail::refused random_normal(First, const More&...) {
  static_assert(detail::takes<op::random_normal, First, More...>,
                "[random_normal] expects a shape first, and got numbers: random_normal(shape<2, "
                "3>, 0.f, 0.1f); random_normal(0., 0.1) is an initializer");
  return {};
}
/// @endcond
/// In the dtype and shape of `x`, whose elements are not used: `random_normal_like(mean)`.
template <ext::expression X>
auto random_normal_like(const X& x, double mean = 0, double stddev = 1,
                        const random_options& options = {}, ext::source_location w = ext::here()) {
  op::random_normal o;
  o.mean = mean;
  o.stddev = stddev;
  return detail::random_like(o, x, options, w);
}
/// The same with a shape and dtype known only at run time.
any_tensor random_normal(const dims& shape, double mean, double stddev, dtype type = dtype::float32,
                         const random_options& options = {}, ext::source_location w = ext::here());
}  // namespace deft
