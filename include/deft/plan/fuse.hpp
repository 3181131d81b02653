// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse.hpp: primitive elementwise nodes joined into fused ones.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <functional>

namespace deft::plan {

/// Joins elementwise nodes, primitive ones and whole expressions, of one device and shape where
/// nobody else needs what is between them. An expression stays a piece of what it becomes part of,
/// as it has a compiled kernel. An update of a variable takes in what only it needs, and is one
/// pass, but for integers, of which a divisor may be refused half way. Devices that `can_run`
/// denies the operation that would be made are left alone; by default there are none.
void fuse(graph_def& g, std::span<edge_def> fetches,
          const std::function<bool(placement, const op_def&)>& can_run = {});

}  // namespace deft::plan
