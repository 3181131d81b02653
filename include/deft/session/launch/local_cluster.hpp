// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/local_cluster.hpp: a whole cluster in one process, for tests and first steps.
#pragma once
#include <deft/core/file.hpp>
#include <deft/session/server/server.hpp>
#include <map>
#include <memory>

namespace deft {

/// A cluster whose servers are all in this process, on ephemeral ports of the loopback interface:
///
///     local_cluster c{{"ps", 1}, {"worker", 2}};
///     session s(c.target("worker", 0));
///
/// The servers talk through sockets, as on separate machines. The destructor stops them.
class local_cluster {
 public:
  using job = std::pair<std::string, int>;  ///< a job's name and its number of tasks

  /// Starts all servers with the same options. Throws as cluster_spec and server do.
  local_cluster(std::initializer_list<job> jobs, server_options options = {});

  /// The cluster, with the ports that were chosen.
  const cluster_spec& spec() const { return spec_; }
  /// "deft://host:port/job:…" of a task, for sessions. Throws not_found.
  std::string target(const std::string& job_name, int task) const {
    return ext::str("deft://", spec_.address(job_name, task), task_name(job_name, task));
  }
  /// The server of a task. Throws not_found if there is no such task, or it was killed.
  server& at(const std::string& job_name, int task);
  /// Ends a server as a crash would: its connections break, its variables are lost. Keeps
  /// its port from other processes; throws unavailable if it cannot.
  void kill(const std::string& job_name, int task);
  /// Kills the server of a task if it runs, and starts a new one at the same address, without
  /// variables. Throws not_found if there is no such task, unavailable if its port is taken.
  void restart(const std::string& job_name, int task);

 private:
  server_options options_;
  cluster_spec spec_;
  std::map<device_name, std::unique_ptr<server>> servers_;
  std::map<device_name, ext::file_descriptor> reserved_;  ///< addresses of servers that were killed
};

}  // namespace deft
