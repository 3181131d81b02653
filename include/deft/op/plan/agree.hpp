// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/agree.hpp: the first input, once all have its shape; plans make it.
#pragma once
#include <deft/expr/tensor.hpp>

namespace deft::op {
/// Its first input, unchanged, if the shapes of all inputs are equal, for operations of plans that
/// would otherwise broadcast.
struct agree {
  static constexpr std::string_view name = "agree";
  static constexpr int arity = 1;
  static constexpr int max_arity = -1;
  static constexpr op_role role = op_role::alias;

  tensor_type infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op
