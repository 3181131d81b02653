// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/fused_update.hpp: an update of a variable in one pass; plans make it.
#pragma once
#include <deft/op/assign.hpp>

namespace deft::op {
/// A variable of known extents becomes what a portable program makes of its elements, the program's
/// first input, and of this node's inputs, which are broadcast to its shape.
struct fused_update : variable_state {
  static constexpr std::string_view name = "fused_update";
  static constexpr int arity = 0;
  static constexpr int max_arity = -1;
  static constexpr op_role role = op_role::update;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;
  program_ref program;
  integers immediates;  ///< bits of the literals, as to_immediate makes them
  static constexpr auto fields = field_list(
      field{"container", &fused_update::container}, field{"name", &fused_update::variable_name},
      field{"dtype", &fused_update::type}, field{"shape", &fused_update::shape},
      field{"program", &fused_update::program}, field{"immediates", &fused_update::immediates});

  tensor_type infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op
