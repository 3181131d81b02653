// SPDX-License-Identifier: Apache-2.0
// deft/plan/passes.hpp: runs the passes in order, and checks the graph after each.
#pragma once
#include <deft/device/info.hpp>
#include <deft/graph/graph_def.hpp>
#include <deft/plan/cut.hpp>
#include <deft/plan/fold.hpp>
#include <deft/plan/fuse.hpp>
#include <span>
#include <string>
#include <vector>

namespace deft::ext::plan {

/// The options of a session that the passes use.
struct pass_options {
  placement own_task;  ///< the session's task
  bool fold = true, fuse = true;
  bool allow_soft_placement = false, log_device_placement = false;
};

/// How many nodes a graph had after a pass.
struct pass_size {
  std::string pass;  ///< "written", "folding", …
  std::uint64_t nodes = 0;
};

/// A graph after all passes.
struct prepared {
  graph_def placed;  ///< the whole graph, each node on its device
  std::vector<part> parts;
  std::vector<pass_size> passes;
  std::vector<unfused_edge> apart;  ///< nodes that were not fused
};

/// Folds, places, fuses, orders and cuts `flat`, whose nodes must be valid. In debug builds the
/// graph is checked after every pass. With `log_device_placement`, logs the device of each node in
/// TensorFlow's format.
prepared run_passes(flat_graph flat, std::span<const device_info> devices,
                    const pass_options& options, const evaluator& evaluate);

/// Checks a placed graph: every node has the full name of a device. Throws internal with the node.
void check_placed(const graph_def& g);
/// Checks a part: every node is on a device of the part's task, and only copies take values from
/// another device. Throws internal with the node.
void check_part(const part& p);

}  // namespace deft::ext::plan
