// SPDX-License-Identifier: Apache-2.0
// deft/train/replica.hpp: variables on the parameter servers, everything else on a worker.
#pragma once
#include <atomic>
#include <deft/device/scope.hpp>
#include <deft/graph/op_def.hpp>
#include <deft/session/cluster/cluster_spec.hpp>
#include <memory>
#include <string>

namespace deft {

/// A device function for between-graph replication, as TensorFlow's replica_device_setter:
/// variables are placed on the tasks of job `ps_job` in turn, everything else on `worker`
/// ("/job:worker/task:1"). Every worker writes the same variables in the same order, so that
/// all agree on the devices. Without a `ps_job` in the cluster, variables stay on the worker.
inline device_spec replica_device(const cluster_spec& cluster, const std::string& worker,
                                  const std::string& ps_job = "ps") {
  auto next = std::make_shared<std::atomic<int>>(0);
  return device([next, worker, ps_job, tasks = cluster.tasks(ps_job)](const node_info& n) {
    if (n.role != op_role::variable || tasks == 0) return worker;
    // An inner scope that names another job, or a task, decides and does not use up a turn.
    if (n.device && !n.device->job.empty() && (n.device->job != ps_job || n.device->task))
      return std::string();
    return ext::str("/job:", ps_job, "/task:", (*next)++ % tasks);
  });
}

}  // namespace deft
