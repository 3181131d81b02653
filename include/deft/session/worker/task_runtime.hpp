// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_runtime.hpp: one task of a cluster: its devices and variables.
#pragma once
#include <deft/execute/executor.hpp>
#include <deft/kernels/gpu/devices.hpp>
#include <memory>
#include <vector>

namespace deft::ext {

/// Makes devices of another kind for a task, whose name comes without device type and index.
using device_maker = std::vector<std::unique_ptr<device_runtime>> (*)(const device_name& task);
/// Adds the devices that `make` returns to every task_runtime made afterwards in this process.
/// Tests add null devices.
void register_device_maker(device_maker make);

/// The devices, variables and incarnation of a task. Kernels, the catalog of operations and the
/// thread team belong to the process.
class task_runtime {
 public:
  /// `files`: where the task reads and writes files. Throws invalid_argument unless `cpu_devices`
  /// is 1 to 1024.
  task_runtime(const device_name& name, int cpu_devices, const gpu::options& gpus = {},
               file_roots files = {});

  const device_name& name() const { return name_; }
  /// For parts of a session whose master is on `master`; empty: on this task.
  task_resources resources(std::uint64_t session = 0, const std::string& master = {}) {
    return {devices_, &store_, session, master.empty() ? to_string(name_) : master};
  }
  std::vector<device_info> devices() const;
  resource_store& store() { return store_; }
  std::uint64_t incarnation() const { return incarnation_; }

 private:
  device_name name_;
  std::vector<std::unique_ptr<device_runtime>> devices_;
  resource_store store_;
  std::uint64_t incarnation_;
};

/// "/job:localhost/replica:0/task:0": the task of a session without a cluster.
device_name local_task_name();

}  // namespace deft::ext
