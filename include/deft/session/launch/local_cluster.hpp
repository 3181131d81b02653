// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/local_cluster.hpp: a cluster in one process, for tests and newcomers.
#pragma once
#include <deft/session/server/server.hpp>
#include <map>
#include <memory>

namespace deft {

/// `local_cluster c{{"ps", 1}, {"worker", 2}}` starts that many servers on ephemeral ports of
/// loopback. They talk through sockets as they would from afar.
class local_cluster {
 public:
  using job = std::pair<std::string, int>;

  local_cluster(std::initializer_list<job> jobs, server_options options = {});

  const cluster_spec& spec() const { return spec_; }
  std::string target(const std::string& job_name, int task) const {
    return "deft://" + spec_.address(job_name, task);
  }
  /// Throws not_found if it was killed, or never was.
  server& at(const std::string& job_name, int task);
  /// Ends a server as a crash would: connections break, variables are lost.
  void kill(const std::string& job_name, int task);
  /// Starts it again on its old address, with nothing in it.
  void restart(const std::string& job_name, int task);

 private:
  server_options options_;
  cluster_spec spec_;
  std::map<device_name, std::unique_ptr<server>> servers_;
};

}  // namespace deft
