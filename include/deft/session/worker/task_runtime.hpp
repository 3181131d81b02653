// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_runtime.hpp: one task of a cluster: its devices and variables.
#pragma once
#include <deft/device/kind.hpp>
#include <deft/execute/executor.hpp>
#include <memory>
#include <vector>

namespace deft::ext {

/// The devices, variables and incarnation of a task. Kernels, the catalog of operations and the
/// thread team belong to the process.
class task_runtime {
 public:
  /// With the devices of all kinds. `files`: where the task reads and writes files. Throws
  /// invalid_argument if a setting or a variable of the environment is not valid.
  explicit task_runtime(const device_name& name, const device_settings& settings = {},
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
