// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/local_cluster.ipp: servers on ephemeral ports.
#pragma once
#include <deft/session/launch/local_cluster.hpp>
#include <deft/transport/listener.hpp>

namespace deft {

local_cluster::local_cluster(std::initializer_list<job> jobs, server_options options)
    : options_(std::move(options)) {
  std::vector<cluster_spec::job> spec;
  std::map<device_name, int> sockets;
  for (const auto& [name, tasks] : jobs) {
    auto& entry = spec.emplace_back(name, std::vector<std::string>());
    for (int i = 0; i < tasks; ++i) {
      int fd = ext::listen_socket("localhost:0");
      sockets[task_name(name, i)] = fd;
      entry.second.push_back(ext::address_of_socket(fd));
    }
  }
  spec_ = cluster_spec(std::move(spec));
  for (const auto& [name, fd] : sockets) {
    options_.listen_fd = fd;
    servers_.emplace(name, std::make_unique<server>(spec_, name.job, *name.task, options_));
  }
  options_.listen_fd = -1;
}

server& local_cluster::at(const std::string& job_name, int task) {
  auto s = servers_.find(task_name(job_name, task));
  if (s == servers_.end())
    ext::fail(errc::not_found, "the cluster has no running task /job:", job_name, "/task:", task,
              "; it is ", spec_);
  return *s->second;
}

void local_cluster::kill(const std::string& job_name, int task) {
  const device_name name = task_name(job_name, task);
  if (servers_.erase(name) > 0)
    reserved_[name] = ext::file_descriptor(ext::reserve_address(spec_.address(job_name, task)));
}

void local_cluster::restart(const std::string& job_name, int task) {
  kill(job_name, task);
  const device_name name = task_name(job_name, task);
  servers_.emplace(name, std::make_unique<server>(spec_, job_name, task, options_));
  reserved_.erase(name);
}

}  // namespace deft
