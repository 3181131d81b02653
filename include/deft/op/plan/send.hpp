// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/send.hpp: pushes a tensor to another task; plans make it.
#pragma once
#include <deft/expr/tensor.hpp>

namespace deft::op {
/// Pushes its input to another task, where a `recv` of the same key waits for it.
struct send {
  static constexpr std::string_view name = "send";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::send;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;
  std::string key;
  std::string peer;  ///< device or task that receives
  static constexpr auto fields = field_list(field{"key", &send::key}, field{"peer", &send::peer});

  void infer(std::span<const tensor_type>) const;
};
}  // namespace deft::op
