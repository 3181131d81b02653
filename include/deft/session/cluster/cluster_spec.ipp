// SPDX-License-Identifier: Apache-2.0
// deft/session/cluster/cluster_spec.ipp: checking and naming clusters.
#pragma once
#include <deft/core/hash.hpp>
#include <deft/session/cluster/cluster_spec.hpp>

namespace deft {

device_name task_name(const std::string& job, int task) {
  return parse_device(str("/job:", job, "/replica:0/task:", task));
}

cluster_spec::cluster_spec(std::vector<job> jobs) : jobs_(std::move(jobs)) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto& [name, addresses] = jobs_[i];
    task_name(name, 0);  // throws if the name is malformed
    for (std::size_t j = 0; j < i; ++j)
      if (jobs_[j].first == name) fail(errc::invalid_argument, "job \"", name, "\" is named twice");
    if (addresses.empty()) fail(errc::invalid_argument, "job \"", name, "\" has no tasks");
    for (const auto& a : addresses) {
      auto colon = a.rfind(':');
      if (colon == a.npos || colon == 0 || colon + 1 == a.size() ||
          a.find_first_not_of("0123456789", colon + 1) != a.npos)
        fail(errc::invalid_argument, "the address \"", a, "\" of job \"", name,
             "\" is not of the form host:port");
    }
  }
}

bool cluster_spec::has(const std::string& job) const { return tasks(job) > 0; }

int cluster_spec::tasks(const std::string& job) const {
  for (const auto& [name, addresses] : jobs_)
    if (name == job) return static_cast<int>(addresses.size());
  return 0;
}

const std::string& cluster_spec::address(const std::string& job, int task) const {
  for (const auto& [name, addresses] : jobs_)
    if (name == job && task >= 0 && task < static_cast<int>(addresses.size()))
      return addresses[static_cast<std::size_t>(task)];
  fail(errc::not_found, "the cluster has no task /job:", job, "/task:", task, "; it is ", *this);
}

void cluster_spec::set_address(const std::string& job, int task, std::string address) {
  for (auto& [name, addresses] : jobs_)
    if (name == job && task >= 0 && task < static_cast<int>(addresses.size())) {
      addresses[static_cast<std::size_t>(task)] = std::move(address);
      return;
    }
  fail(errc::not_found, "the cluster has no task /job:", job, "/task:", task);
}

std::vector<device_name> cluster_spec::task_names() const {
  std::vector<device_name> names;
  for (const auto& [name, addresses] : jobs_)
    for (int i = 0; i < static_cast<int>(addresses.size()); ++i)
      names.push_back(task_name(name, i));
  return names;
}

std::uint64_t cluster_spec::fingerprint() const {
  if (jobs_.empty()) return 0;
  std::uint64_t h = 1;
  for (const auto& [name, addresses] : jobs_) h = mix(mix(h, hash_text(name)), addresses.size());
  return h ? h : 1;
}

std::string to_string(const cluster_spec& c) {
  return join(c.jobs(), "; ", [](const auto& j) { return j.first + ": " + join(j.second, ", "); });
}

}  // namespace deft
