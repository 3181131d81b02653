// SPDX-License-Identifier: Apache-2.0
// deft/plan/passes.hpp: the passes, in their order, and what must hold after each.
#pragma once
#include <deft/device/info.hpp>
#include <deft/graph/graph_def.hpp>
#include <deft/plan/cut.hpp>
#include <deft/plan/fold.hpp>
#include <deft/plan/fuse.hpp>
#include <span>
#include <string>
#include <vector>

namespace deft::plan {

/// What of a session's options the passes look at.
struct pass_options {
  placement own_task;  ///< the session's
  bool fold = true, fuse = true;
  bool allow_soft_placement = false, log_device_placement = false;
};

/// How many nodes a graph had after a pass.
struct pass_size {
  std::string pass;  ///< what the nodes were then: "written", "folded", …
  std::uint64_t nodes = 0;
};

/// A graph after all passes.
struct prepared {
  graph_def placed;  ///< the whole graph, each node on its device
  std::vector<part> parts;
  std::vector<pass_size> passes;
  std::vector<kept_apart> apart;  ///< by fusion
};

/// Folds, places, fuses, orders and cuts `flat`, whose nodes are sound. In debug builds the graph
/// is checked after every pass. Logs TensorFlow's line for each node if the options ask for it.
prepared run_passes(flat_graph flat, std::span<const device_info> devices,
                    const pass_options& options, const evaluator& evaluate);

/// After placement: every node has the full name of a device.
void check_placed(const graph_def& g);
/// After the cut: every node of a part is on a device of its task, and takes values from its own
/// device alone, but for copies. Both throw internal naming the node.
void check_part(const part& p);

}  // namespace deft::plan
