// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/fused_fold.hpp: a reduction of an expression that is never there as a whole, which
// plans make where operands are broadcast to more elements than they have.
#pragma once
#include <deft/op/base/reduction.hpp>
#include <deft/op/plan/fused.hpp>
#include <string>

namespace deft::op {
/// A reduction of what `fused` computes with this program and these immediates.
struct fused_fold {
  static constexpr std::string_view name = "fused_fold";
  static constexpr int arity = 0;
  static constexpr int max_arity = -1;
  program_ref program;
  std::string reduction;  ///< its operation's name
  dims axes;
  bool keepdims = false;
  integers immediates;
  static constexpr auto fields =
      field_list(field{"program", &fused_fold::program}, field{"reduction", &fused_fold::reduction},
                 field{"axes", &fused_fold::axes}, field{"keepdims", &fused_fold::keepdims},
                 field{"immediates", &fused_fold::immediates});

  fused expression() const { return {program, immediates}; }
  std::vector<tensor_type> infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op
