// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/node_program.hpp: the portable program that a node carries.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <optional>

namespace deft::ext::gpu {

struct node_program {
  program_ref program;
  integers literals;
  bool late = false;    ///< literals are further inputs of each run, of rank 0
  bool update = false;  ///< results take the place of the inputs of the same numbers
};

/// That of a fused node or update whose inputs have these types; none of other nodes.
inline std::optional<node_program> program_of(const node_def& n, std::span<const tensor_type> in) {
  if (n.op->name == op::fused::name) {
    auto o = decode<op::fused>(n.attributes);
    const bool late = in.size() > o.program->inputs.size();
    return node_program{std::move(o.program), std::move(o.immediates), late, false};
  }
  if (n.op->name == op::fused_update::name) {
    auto o = decode<op::fused_update>(n.attributes);
    return node_program{std::move(o.program), std::move(o.immediates), false, true};
  }
  return std::nullopt;
}

}  // namespace deft::ext::gpu
