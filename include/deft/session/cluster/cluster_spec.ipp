// SPDX-License-Identifier: Apache-2.0
// deft/session/cluster/cluster_spec.ipp: checking and naming clusters.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/session/cluster/cluster_spec.hpp>
#include <deft/transport/address.hpp>
#include <map>

namespace deft {
namespace {

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

device_name task_name(const std::string& job, int task) {
  return parse_device(ext::str("/job:", job, "/replica:0/task:", task));
}

cluster_spec::cluster_spec(std::vector<job> jobs) : jobs_(std::move(jobs)) {
  std::map<std::string, std::string> tasks;  // by address
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto& [name, addresses] = jobs_[i];
    // A name that device names parse as more than a job, such as "ps/cpu:0", is refused.
    if (task_name(name, 0).job != name || !task_name(name, 0).type.empty())
      ext::fail(errc::invalid_argument, "\"", name, "\" is not a valid job name");
    for (std::size_t j = 0; j < i; ++j)
      if (jobs_[j].first == name)
        ext::fail(errc::invalid_argument, "job \"", name, "\" is listed twice");
    if (addresses.empty()) ext::fail(errc::invalid_argument, "job \"", name, "\" has no tasks");
    for (std::size_t t = 0; t < addresses.size(); ++t) {
      const std::string task = ext::str("/job:", name, "/task:", t);
      const std::string& address = addresses[t];  // clang 14 cannot capture structured bindings
      std::pair<std::string, std::string> parts;
      if (auto failure = ext::failure_of([&] { parts = detail::split_address(address); }))
        ext::fail(errc::invalid_argument, task, ": ", failure->message());
      if (parts.first.empty())
        ext::fail(errc::invalid_argument, task, ": \"", address,
                  "\" is not a valid address: expected host:port");
      if (parts.second == "0") continue;  // the system chooses
      auto [first, fresh] = tasks.emplace(lower(address), task);
      if (!fresh)
        ext::fail(errc::invalid_argument, first->second, " and ", task, " have the same address, ",
                  address);
    }
  }
}

bool cluster_spec::has(const std::string& job_name) const { return tasks(job_name) > 0; }

int cluster_spec::tasks(const std::string& job_name) const {
  for (const auto& [name, addresses] : jobs_)
    if (name == job_name) return static_cast<int>(addresses.size());
  return 0;
}

const std::string& cluster_spec::address(const std::string& job_name, int task) const {
  for (const auto& [name, addresses] : jobs_)
    if (name == job_name && task >= 0 && task < static_cast<int>(addresses.size()))
      return addresses[static_cast<std::size_t>(task)];
  ext::fail(errc::not_found, "the cluster has no task /job:", job_name, "/task:", task, "; it is ",
            *this);
}

void cluster_spec::set_address(const std::string& job_name, int task, std::string address) {
  for (auto& [name, addresses] : jobs_)
    if (name == job_name && task >= 0 && task < static_cast<int>(addresses.size())) {
      addresses[static_cast<std::size_t>(task)] = std::move(address);
      return;
    }
  ext::fail(errc::not_found, "the cluster has no task /job:", job_name, "/task:", task);
}

std::vector<device_name> cluster_spec::task_names() const {
  std::vector<device_name> names;
  for (const auto& [name, addresses] : jobs_)
    for (int i = 0; i < static_cast<int>(addresses.size()); ++i)
      names.push_back(task_name(name, i));
  return names;
}

std::vector<device_name> cluster_spec::workers() const {
  auto names = task_names();
  std::erase_if(names, [](const device_name& n) { return n.job == "ps"; });
  return names;
}

device_name cluster_spec::chief() const {
  const auto all = workers();
  if (all.empty()) ext::fail(errc::not_found, "the cluster has no worker; it is ", *this);
  return all.front();
}

std::vector<std::string> cluster_spec::entries() const {
  std::vector<std::string> all;
  for (const auto& [name, addresses] : jobs_)
    for (std::size_t i = 0; i < addresses.size(); ++i)
      all.push_back(ext::str("/job:", name, "/task:", i, " at ", lower(addresses[i])));
  return all;
}

std::string to_string(const cluster_spec& c) {
  return ext::join(c.jobs(), "; ",
                   [](const auto& j) { return j.first + ": " + ext::join(j.second, ", "); });
}

}  // namespace deft
