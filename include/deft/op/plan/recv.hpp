// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/recv.hpp: what a `send` of another task pushes; plans make it.
#pragma once
#include <deft/expr/tensor.hpp>

namespace deft::op {
/// What a `send` of another task pushes.
struct recv {
  static constexpr std::string_view name = "recv";
  static constexpr int arity = 0;
  static constexpr op_role role = op_role::receive;
  static constexpr op_traits traits = op_traits::stateful;
  std::string key;
  std::string peer;  ///< device or task that sends
  dtype type = dtype::none;
  dims shape;
  static constexpr auto fields =
      field_list(field{"key", &recv::key}, field{"peer", &recv::peer}, field{"dtype", &recv::type},
                 field{"shape", &recv::shape});

  tensor_type infer(std::span<const tensor_type>) const;
};
}  // namespace deft::op
