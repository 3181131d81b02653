// SPDX-License-Identifier: Apache-2.0
// deft/session/server/server_table.hpp: the servers of this process, which its sessions reach
// without a socket.
#pragma once
#include <deft/session/engine.hpp>
#include <memory>
#include <string>

namespace deft {

class server_impl;

void add_server(const std::string& address, server_impl& s);
/// Afterwards nobody gets an engine of it.
void remove_server(const server_impl& s);
/// An engine on the server that listens at `address`; null if there is none in this process.
std::shared_ptr<engine> engine_of_server(const std::string& address,
                                         const session_options& options);

}  // namespace deft
