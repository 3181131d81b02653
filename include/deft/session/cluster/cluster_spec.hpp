// SPDX-License-Identifier: Apache-2.0
// deft/session/cluster/cluster_spec.hpp: the jobs of a cluster, their tasks and addresses.
#pragma once
#include <cstdint>
#include <deft/device/name.hpp>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace deft {

/// The jobs of a cluster, each with the addresses of its tasks in order:
/// `cluster_spec c{{"ps", {"ps0:2222"}}, {"worker", {"wk0:2222", "wk1:2222"}}}`.
class cluster_spec {
 public:
  /// A job's name and its tasks' addresses, "host:port" each.
  using job = std::pair<std::string, std::vector<std::string>>;

  cluster_spec() = default;
  /// Throws invalid_argument for an invalid job name, a job that is listed twice or has no tasks,
  /// an address that is not host:port, and an address that two tasks share, unless its port is 0
  /// (the system then chooses one).
  /// @{
  cluster_spec(std::initializer_list<job> jobs) : cluster_spec(std::vector<job>(jobs)) {}
  explicit cluster_spec(std::vector<job> jobs);
  /// @}

  /// In the order in which they were given.
  const std::vector<job>& jobs() const { return jobs_; }
  /// Whether it has no jobs, as that of a single process.
  bool empty() const { return jobs_.empty(); }
  /// Whether there is such a job.
  bool has(const std::string& job_name) const;
  /// The number of tasks in a job; 0 if there is no such job.
  int tasks(const std::string& job_name) const;
  /// "host:port" of a task, numbered from 0. Throws not_found, listing the cluster.
  const std::string& address(const std::string& job_name, int task) const;
  /// Replaces the address of a task, for ports that the system has chosen. Throws not_found.
  void set_address(const std::string& job_name, int task, std::string address);
  /// The name of every task, such as "/job:ps/replica:0/task:0".
  std::vector<device_name> task_names() const;
  /// The names of the workers: the tasks of all jobs but "ps", whose tasks serve until all workers
  /// are done.
  std::vector<device_name> workers() const;
  /// The chief, the first worker: it initializes, restores and saves for the others. Throws
  /// not_found if there is no worker.
  device_name chief() const;
  /// "/job:ps/task:0 at ps0:2222" for every task, with the address in lower case. Two tasks compare
  /// these lists when they connect.
  std::vector<std::string> entries() const;

 private:
  std::vector<job> jobs_;
};

/// The cluster as text, such as "ps: ps0:2222; worker: wk0:2222, wk1:2222".
std::string to_string(const cluster_spec& c);
/// "/job:<job>/replica:0/task:<task>" as a device name. Throws invalid_argument for an invalid job
/// name.
device_name task_name(const std::string& job, int task);

}  // namespace deft
