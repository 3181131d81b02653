// SPDX-License-Identifier: Apache-2.0
// deft/plan/place.hpp: every node gets a device.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace deft {

/// A device that nodes can be placed on, on any task of the cluster.
struct device_info {
  const device_name* name = nullptr;  ///< full: "/job:worker/replica:0/task:1/cpu:0"
  std::string description;            ///< "AMD EPYC, 2 cores", "simulated", …
  std::uint64_t memory = 0;           ///< bytes; 0 if unknown
  std::string bus_id;                 ///< PCI bus id; empty for processors
  std::shared_ptr<const std::set<std::string>> kernels;  ///< operations that it can run
};
/// "/job:…/cpu:0 (AMD EPYC, 2 cores, 25.2 GB)".
std::string to_string(const device_info& d);

namespace plan {

struct placement_options {
  const device_name* default_task = nullptr;  ///< job, replica and task of the session
  bool soft = false;  ///< where a request cannot be met, take what there is, and log
};

/// Sets `device` of every node. A request that names no task means the session's own; among the
/// devices left the first GPU that has a kernel wins, else the CPU. What touches one variable goes
/// where the variable is; a constant or feed without request goes to its first user.
/// Throws invalid_argument naming the node, the request, the devices and the kernels there are.
void place(graph_def& g, std::span<const device_info> devices, const placement_options& options);

}  // namespace plan
}  // namespace deft
