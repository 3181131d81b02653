// SPDX-License-Identifier: Apache-2.0
// deft/op/no_op.hpp: an operation that does nothing, after what it depends on.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct no_op {
  static constexpr std::string_view name = "no_op";
  static constexpr int arity = 0;
  static constexpr op_role role = op_role::order;
  static constexpr op_traits traits = op_traits::no_value;

  void infer(std::span<const tensor_type>) const {}
};
}  // namespace deft::op

namespace deft {
/// An operation that computes nothing and waits for the control dependencies in force here.
operation no_op(ext::source_location w = ext::here());
}  // namespace deft
