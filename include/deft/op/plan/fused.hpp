// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/fused.hpp: a whole elementwise expression, which lowering and plans make; or a
// region of several, with folds, which plans make.
#pragma once
#include <deft/expr/tensor.hpp>

namespace deft::op {
/// A portable program over the inputs, which are broadcast together: an expression, or a region
/// with an output for each of its results. Where the literals are known only when a plan is run,
/// they are further inputs, of rank 0, and `immediates` is not used.
struct fused {
  static constexpr std::string_view name = "fused";
  static constexpr int arity = 0;
  static constexpr int max_arity = -1;
  program_ref program;
  integers immediates;  ///< bits of the literals, as to_immediate makes them
  static constexpr auto fields =
      field_list(field{"program", &fused::program}, field{"immediates", &fused::immediates});

  std::vector<tensor_type> infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op

namespace deft::detail {
/// The shape of each value of a program over these inputs; that of a fold is taken for a scalar's.
/// Throws invalid_argument for the first operation whose operands cannot be broadcast together.
std::vector<dims> shapes_of(const program& p, std::span<const tensor_type> in);
}  // namespace deft::detail
