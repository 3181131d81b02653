// SPDX-License-Identifier: Apache-2.0
// deft/session/cluster/own_address.ipp: loopback, and the addresses of all interfaces.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/cluster/own_address.hpp>
#include <deft/transport/address.hpp>

namespace deft::ext {
namespace {

/// Whether only processes of this machine are there. False if that is not known.
bool is_loopback(const std::string& address) {
  std::vector<boost::asio::ip::tcp::endpoint> found;
  if (failure_of([&] { found = detail::resolve(address); })) return false;
  return std::ranges::all_of(found, [](const auto& e) { return e.address().is_loopback(); });
}

}  // namespace

void check_addresses(const cluster_spec& cluster, const std::string& job, int task,
                     const std::string& address) {
  const device_name own = task_name(job, task);
  std::vector<device_name> others = cluster.task_names();
  std::erase(others, own);
  for (const auto& other : others) {
    const std::string& given = cluster.address(other.job, *other.task);
    const std::string entry =
        str("[server] /job:", other.job, "/task:", *other.task, " at ", given);
    if (given.ends_with(":0"))
      fail(errc::invalid_argument, entry,
           ": the system may choose the port of a server's own address only, as the others' have "
           "to be known");
    if (detail::is_any_address(given))
      fail(errc::invalid_argument, entry,
           ": that stands for all interfaces of a task's own machine, and only the task itself may "
           "be started with it; give the address at which others reach it");
  }
  if (detail::is_any_address(address) || !is_loopback(address)) return;
  for (const auto& other : others) {
    const std::string& given = cluster.address(other.job, *other.task);
    if (is_loopback(given)) continue;
    const std::string& name = cluster.address(job, task);
    const std::string port = name.substr(name.rfind(':'));
    const auto here = detail::resolve(address).front().address().to_string();
    return logging::warning("[server] ", name, ", the address of /job:", job, "/task:", task,
                            ", is ", here,
                            " here: other machines, such as that of /job:", other.job,
                            "/task:", *other.task, " at ", given,
                            ", cannot connect to it; correct its line in /etc/hosts, or start this "
                            "task with 0.0.0.0",
                            port, " as its own address");
  }
}

}  // namespace deft::ext
