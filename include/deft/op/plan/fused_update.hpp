// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/fused_update.hpp: updates of variables in one pass; plans make it.
#pragma once
#include <deft/op/assign.hpp>

namespace deft::op {
/// Variables of the same extents become what a portable program makes of their elements, the
/// program's first inputs, and of this node's inputs, which are broadcast to their shape: its
/// results, in the order of the variables. One variable's program is an expression, that of several
/// a region. Yields their new values.
struct fused_update {
  static constexpr std::string_view name = "fused_update";
  static constexpr int arity = 0;
  static constexpr int max_arity = -1;
  static constexpr op_role role = op_role::update;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;
  strings containers, names;  ///< of the variables
  dims shape;
  /// Where extents are known only at run time: for each variable the program's value that updates
  /// it, which has the variable's extents by itself, as an update repeats no elements.
  integers operands;
  program_ref program;
  integers immediates;  ///< bits of the literals, as to_immediate makes them
  static constexpr auto fields = field_list(
      field{"containers", &fused_update::containers}, field{"names", &fused_update::names},
      field{"shape", &fused_update::shape}, field{"operands", &fused_update::operands},
      field{"program", &fused_update::program}, field{"immediates", &fused_update::immediates});

  std::vector<resource_ref> resources() const;
  std::vector<tensor_type> infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op
