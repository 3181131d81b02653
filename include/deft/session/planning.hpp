// SPDX-License-Identifier: Apache-2.0
// deft/session/planning.hpp: the passes, in their order.
#pragma once
#include <deft/execute/device.hpp>
#include <deft/plan/cut.hpp>
#include <deft/session/engine.hpp>

namespace deft {

/// A graph after all passes.
struct prepared_plan {
  graph_def placed;  ///< the whole graph, each node on its device
  std::vector<plan::part> parts;
  std::vector<pass_size> passes;
};

/// Prunes, folds, places, fuses, orders and cuts `flat`; the graph is checked after every pass.
/// `log` gets TensorFlow's line for each node if the session asks for them.
prepared_plan make_parts(flat_graph flat, std::span<const device_info> devices,
                         const device_name& own_task, const session_options& options);

/// Runs one node on the host with the CPU's kernels; for folding.
std::vector<any_array> evaluate_on_host(const node_def& n, std::span<const any_array> inputs);

}  // namespace deft
