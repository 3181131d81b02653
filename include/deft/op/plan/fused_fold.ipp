// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/fused_fold.ipp: shape rule of fused_fold.
#pragma once
#include <deft/op/plan/fused_fold.hpp>

namespace deft {

std::vector<ext::tensor_type> op::fused_fold::infer(std::span<const ext::tensor_type> in) const {
  const ext::op_def* how = ext::find_op(reduction);
  if (!how || how->folds == ext::fold_kind::none)
    ext::fail(errc::invalid_argument, "[fused_fold] expects a reduction, and got \"", reduction,
              "\"");
  if (program->is_region())
    ext::fail(errc::invalid_argument, "[fused_fold] expects an expression, and got a region");
  if (axes.empty())
    ext::fail(errc::invalid_argument, "[fused_fold] expects axes to reduce, and got none");
  const std::vector<ext::tensor_type> of = expression().infer(in);
  std::vector<ext::tensor_type> out;
  ext::infer_types(*how, {of, ext::encode(op::reduction{axes, keepdims})}, out);
  return out;
}

}  // namespace deft
