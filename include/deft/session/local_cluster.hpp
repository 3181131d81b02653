// SPDX-License-Identifier: Apache-2.0
// deft/session/local_cluster.hpp: a cluster in one process, for tests and newcomers.
#pragma once
#include <deft/session/server.hpp>
#include <deft/transport/listener.hpp>
#include <map>
#include <memory>

namespace deft {

/// `local_cluster c{{"ps", 1}, {"worker", 2}}` starts that many servers on ephemeral ports of
/// loopback. They talk through sockets as they would from afar.
class local_cluster {
 public:
  using job = std::pair<std::string, int>;

  local_cluster(std::initializer_list<job> jobs, server_options options = {}) : options_(options) {
    std::vector<cluster_spec::job> spec;
    std::map<device_name, int> sockets;
    for (const auto& [name, tasks] : jobs) {
      auto& entry = spec.emplace_back(name, std::vector<std::string>());
      for (int i = 0; i < tasks; ++i) {
        int fd = listen_socket("localhost:0");
        sockets[task_name(name, i)] = fd;
        entry.second.push_back(address_of_socket(fd));
      }
    }
    spec_ = cluster_spec(std::move(spec));
    for (const auto& [name, fd] : sockets) {
      options_.listen_fd = fd;
      servers_.emplace(name, std::make_unique<server>(spec_, name.job, *name.task, options_));
    }
    options_.listen_fd = -1;
  }

  const cluster_spec& spec() const { return spec_; }
  std::string target(const std::string& job, int task) const {
    return "deft://" + spec_.address(job, task);
  }
  /// Throws not_found if it was killed, or never was.
  server& at(const std::string& job, int task) {
    auto s = servers_.find(task_name(job, task));
    if (s == servers_.end()) fail(errc::not_found, "there is no server /job:", job, "/task:", task);
    return *s->second;
  }
  /// Ends a server as a crash would: connections break, variables are lost.
  void kill(const std::string& job, int task) { servers_.erase(task_name(job, task)); }
  /// Starts it again on its old address, with nothing in it.
  void restart(const std::string& job, int task) {
    kill(job, task);
    servers_.emplace(task_name(job, task), std::make_unique<server>(spec_, job, task, options_));
  }

 private:
  server_options options_;
  cluster_spec spec_;
  std::map<device_name, std::unique_ptr<server>> servers_;
};

}  // namespace deft
