// SPDX-License-Identifier: Apache-2.0
// deft/kernels/constant_folding.hpp: single nodes on the host, for constant folding.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <span>
#include <vector>

namespace deft::ext {

/// Runs one node with the CPU's kernel; nothing if there is none. Throws what the kernel does.
std::vector<any_array> evaluate_on_host(const node_def& n, std::span<const any_array> inputs);

}  // namespace deft::ext
