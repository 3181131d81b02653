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

  tensor_type infer(std::span<const tensor_type>) const;
};
}  // namespace deft::op

namespace deft {
/// Normally distributed random numbers, float or double: `random_normal(shape<100, 10>, 0.f,
/// 0.1f)`. New in every run, seeded as random_uniform. Throws invalid_argument if stddev is
/// negative or a parameter is not finite.
template <element T = float, std::int64_t... E>
tensor<T, E...> random_normal(shape_t<E...>, std::type_identity_t<T> mean = 0,
                              std::type_identity_t<T> stddev = 1,
                              const random_options& options = {}, source_place w = here()) {
  op::random_normal o;
  o.mean = mean;
  o.stddev = stddev;
  return detail::random_tensor<T, shape_t<E...>>(o, options, w);
}
/// The same with a shape and dtype known only at run time.
any_tensor random_normal(const dims& shape, double mean, double stddev, dtype type = dtype::float32,
                         const random_options& options = {}, source_place w = here());
}  // namespace deft
