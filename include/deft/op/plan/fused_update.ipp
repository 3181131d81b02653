// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/fused_update.ipp: shape rule of fused_update.
#pragma once
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>

namespace deft {

tensor_type op::fused_update::infer(std::span<const tensor_type> in) const {
  const tensor_type own = checked(name);
  if (!own.shape.is_static())
    fail(errc::invalid_argument, "[fused_update] expects a variable of known extents, and got ",
         own);
  if (program->is_region())
    fail(errc::invalid_argument, "[fused_update] expects an expression, and got a region");
  std::vector<tensor_type> all{own};
  all.insert(all.end(), in.begin(), in.end());
  if (all.size() != program->inputs.size())
    fail(errc::invalid_argument, "[fused_update] the program takes ", program->inputs.size(),
         " inputs, not ", all.size());
  return checked_update(name, op::fused{program, immediates}.infer(all).front(), true);
}

}  // namespace deft
