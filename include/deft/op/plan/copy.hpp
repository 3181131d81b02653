// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/copy.hpp: a tensor on another device of its task; plans make it.
#pragma once
#include <deft/expr/tensor.hpp>

namespace deft::op {
/// Its input on another device of the same task.
struct copy {
  static constexpr std::string_view name = "copy";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::copy;
  std::string device;
  static constexpr auto fields = field_list(field{"device", &copy::device});

  tensor_type infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op
