// SPDX-License-Identifier: Apache-2.0
// deft/session/server/server_table.hpp: the servers of this process, which its sessions reach
// without a socket.
#pragma once
#include <deft/session/engine.hpp>
#include <memory>
#include <string>

namespace deft::ext {

class server_impl;

/// Makes `s` known at `address`, as long as remove_server is not called.
void add_server(const std::string& address, server_impl& s);
/// Removes `s`: engine_of_server does not return engines of it afterwards.
void remove_server(const server_impl& s);
/// An engine on the server of this process that listens at `address`; null if there is none. Throws
/// failed_precondition if it is not `task`; empty: any.
std::shared_ptr<engine> engine_of_server(const std::string& address, const std::string& task,
                                         const session_options& options);

}  // namespace deft::ext
