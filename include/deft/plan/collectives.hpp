// SPDX-License-Identifier: Apache-2.0
// deft/plan/collectives.hpp: collective operations as sums and transfers.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <span>

namespace deft::ext::plan {

/// Slices of a tensor that is reduced on several devices have so many bytes at least: below that,
/// one transfer of the whole takes less time than two of parts.
inline constexpr std::size_t least_slice = 64 << 10;

/// Replaces each collective operation, whose nodes are one for each device, by operations that
/// every device has. Nodes must be placed.
///
/// Of large tensors with known extents each device adds one slice, from all devices, and then takes
/// the other slices from where they were added: reduce-scatter and all-gather. Otherwise one device
/// adds them all. Either way operands are added one after another, in their order.
void expand_collectives(graph_def& g, std::span<edge_def> fetches);

}  // namespace deft::ext::plan
