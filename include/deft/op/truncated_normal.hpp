// SPDX-License-Identifier: Apache-2.0
// deft/op/truncated_normal.hpp: normally distributed numbers within two standard deviations.
#pragma once
#include <deft/op/base/random.hpp>

namespace deft::op {
struct truncated_normal : random {
  static constexpr std::string_view name = "truncated_normal";
  double stddev = 1;
  static constexpr auto fields =
      field_list(field{"shape", &truncated_normal::shape}, field{"dtype", &truncated_normal::type},
                 field{"stddev", &truncated_normal::stddev}, field{"key", &truncated_normal::key},
                 field{"every_step", &truncated_normal::every_step});

  tensor_type infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op

namespace deft {
/// Normally distributed random numbers of mean 0, float or double; those beyond two standard
/// deviations are drawn again: `truncated_normal(shape<784, 128>, 0.05f)`. New in every run, seeded
/// as random_uniform. Throws invalid_argument if stddev is negative or not finite.
template <ext::element T = float, std::int64_t... E>
requires detail::is_known<shape_t<E...>> tensor<T, E...> truncated_normal(
    shape_t<E...>, std::type_identity_t<T> stddev = 1, const random_options& options = {},
    ext::source_location w = ext::here()) {
  op::truncated_normal o;
  o.stddev = stddev;
  return detail::random_tensor<T, shape_t<E...>>(o, options, w);
}
/// The same with extents that a run computes, as random_normal has them:
/// `truncated_normal(shape<dyn, 16>, {size_of(x, axis<0>)})`.
template <ext::element T = float, std::int64_t... E>
requires(!detail::is_known<shape_t<E...>>) tensor<T, E...> truncated_normal(
    shape_t<E...>, const detail::size_list& n, std::type_identity_t<T> stddev = 1,
    const random_options& options = {}, ext::source_location w = ext::here()) {
  op::truncated_normal o;
  o.stddev = stddev;
  return detail::random_sized<T, shape_t<E...>>(o, n, options, w);
}
/// @cond refused
template <ext::element T = float, std::int64_t... E, class... Rest>
requires(!detail::is_known<shape_t<E...>> &&
         (!ext::expression<Rest> && ...)) auto truncated_normal(shape_t<E...>, const Rest&...) {
  return detail::refuse_unsized<op::truncated_normal, shape_t<E...>>();
}
template <ext::scalar First, class... More>
requires(sizeof...(More) > 0 && !(ext::scalar<More> && ...)) detail::refused
    truncated_normal(First, const More&...) {
  static_assert(detail::takes<op::truncated_normal, First, More...>,
                "[truncated_normal] expects a shape first, and got a number: "
                "truncated_normal(shape<2, 3>, 0.1f)");
  return {};
}
/// @endcond
/// In the dtype and shape of `x`, whose elements are not used.
template <ext::expression X>
auto truncated_normal_like(const X& x, double stddev = 1, const random_options& options = {},
                           ext::source_location w = ext::here()) {
  op::truncated_normal o;
  o.stddev = stddev;
  return detail::random_like(o, x, options, w);
}
/// The same with a shape and dtype known only at run time.
any_tensor truncated_normal(const dims& shape, double stddev, dtype type = dtype::float32,
                            const random_options& options = {},
                            ext::source_location w = ext::here());
}  // namespace deft
