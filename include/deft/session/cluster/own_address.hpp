// SPDX-License-Identifier: Apache-2.0
// deft/session/cluster/own_address.hpp: whether the tasks of a cluster can reach each other.
#pragma once
#include <deft/session/cluster/cluster_spec.hpp>
#include <string>

namespace deft::ext {

/// Checks a cluster as the server of one of its tasks was given it. `address`: where the server
/// listens. Throws invalid_argument if the address of another task has port 0, or is that of all
/// interfaces (0.0.0.0 or [::]), as nobody could connect to it. Logs a warning if `address` is
/// loopback, but another task is on another machine, which then cannot connect.
void check_addresses(const cluster_spec& cluster, const std::string& job, int task,
                     const std::string& address);

}  // namespace deft::ext
