// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/feed.hpp: stands for what a run is fed; plans make it.
#pragma once
#include <deft/expr/tensor.hpp>

namespace deft::op {
/// Stands for feed number `index` of a plan.
struct feed {
  static constexpr std::string_view name = "feed";
  static constexpr int arity = 0;
  static constexpr op_role role = op_role::feed;
  static constexpr op_traits traits = op_traits::stateful;
  std::int64_t index = 0;
  dtype type = dtype::none;
  dims shape;
  static constexpr auto fields = field_list(
      field{"index", &feed::index}, field{"dtype", &feed::type}, field{"shape", &feed::shape});

  tensor_type infer(std::span<const tensor_type>) const;
};
}  // namespace deft::op
