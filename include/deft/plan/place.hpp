// SPDX-License-Identifier: Apache-2.0
// deft/plan/place.hpp: every node gets a device.
#pragma once
#include <deft/device/info.hpp>
#include <deft/graph/graph_def.hpp>
#include <span>

namespace deft {

namespace plan {

struct placement_options {
  placement default_task;  ///< job, replica and task of the session
  bool soft = false;       ///< where a request cannot be met, take what there is, and log
};

/// Sets `device` of every node. A request that names no task means the session's own; among the
/// devices left the first GPU that has a kernel wins, else the CPU. What touches one variable goes
/// where the variable is; a constant or feed without request goes to its first user.
/// Throws invalid_argument naming the node, the request, the devices and the kernels there are.
void place(graph_def& g, std::span<const device_info> devices, const placement_options& options);

}  // namespace plan
}  // namespace deft
