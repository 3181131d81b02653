// SPDX-License-Identifier: Apache-2.0
// deft/plan/place.hpp: assigns a device to every node.
#pragma once
#include <deft/device/info.hpp>
#include <deft/graph/graph_def.hpp>
#include <span>

namespace deft::ext {

namespace plan {

struct placement_options {
  placement default_task;  ///< job, replica and task of the session
  bool soft = false;       ///< if a request cannot be met, use another device, and log it
  /// Of the body of a function: where its nodes go without a request, but for those of resources,
  /// if it has kernels for them.
  placement preferred = nullptr;
};

/// Sets `device` of every node. A request that names no task means the session's task. Of the
/// devices that match the request, the first GPU that has a kernel is taken, else the CPU.
/// Operations on a variable go to the device of the variable; a constant or feed without a request
/// goes to the device of its first consumer; a collective operation is where its first input is; a
/// group without a request is where it first waits for something of its task.
/// A constant that other tasks use gets a node on each of them, so that it need not be sent.
/// Throws invalid_argument with the node, the request, the devices and the kernels that exist.
void place(graph_def& g, std::span<edge_def> fetches, std::span<const device_info> devices,
           const placement_options& options);

}  // namespace plan
}  // namespace deft::ext
