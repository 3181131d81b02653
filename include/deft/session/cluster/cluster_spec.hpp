// SPDX-License-Identifier: Apache-2.0
// deft/session/cluster/cluster_spec.hpp: jobs, tasks, and their addresses.
#pragma once
#include <cstdint>
#include <deft/device/name.hpp>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace deft {

/// `cluster_spec c{{"ps", {"ps0:2222"}}, {"worker", {"wk0:2222", "wk1:2222"}}}`.
class cluster_spec {
 public:
  using job = std::pair<std::string, std::vector<std::string>>;

  cluster_spec() = default;
  /// Throws invalid_argument for a job named twice, a malformed name, what is no host:port, and one
  /// address of two tasks, whose port is not 0.
  cluster_spec(std::initializer_list<job> jobs) : cluster_spec(std::vector<job>(jobs)) {}
  explicit cluster_spec(std::vector<job> jobs);

  const std::vector<job>& jobs() const { return jobs_; }
  bool empty() const { return jobs_.empty(); }
  bool has(const std::string& job_name) const;
  /// Tasks of a job; 0 if there is no such job.
  int tasks(const std::string& job_name) const;
  /// Throws not_found naming what there is.
  const std::string& address(const std::string& job_name, int task) const;
  /// Replaces an address: for ports that were chosen by the system.
  void set_address(const std::string& job_name, int task, std::string address);
  /// "/job:ps/replica:0/task:0" of every task.
  std::vector<device_name> task_names() const;
  /// "/job:ps/task:0 at ps0:2222" of every task, in lower case: what two tasks compare before they
  /// talk.
  std::vector<std::string> entries() const;

 private:
  std::vector<job> jobs_;
};

/// "ps: 127.0.0.1:2222; worker: …".
std::string to_string(const cluster_spec& c);
/// The name of one task.
device_name task_name(const std::string& job, int task);

}  // namespace deft
