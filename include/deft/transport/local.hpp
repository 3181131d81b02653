// SPDX-License-Identifier: Apache-2.0
// deft/transport/local.hpp: streams within a machine: a local socket, and shared memory for large
// pieces. Internal.
#pragma once
#include <deft/transport/asio.hpp>
#include <deft/transport/event_loop.hpp>
#include <deft/transport/shared_slots.hpp>
#include <deft/transport/stream.hpp>
#include <string>

namespace deft::detail {

/// Pieces of a write of at least this many bytes go through shared memory.
inline constexpr std::size_t large_piece = 64 * 1024;

/// Identifies the processes that local sockets can connect: the same number in all processes of one
/// boot of a machine and one network namespace. 0: unknown, or DEFT_LOCAL_SOCKETS=0 in the
/// environment.
std::uint64_t local_reach();

/// Takes over a connected socket.
std::unique_ptr<stream> local_stream(boost::asio::local::stream_protocol::socket s,
                                     event_loop& loop);
/// Connects to the process that listens as `name`. Does not wait. If it fails, returns null and
/// sets `failed`.
std::unique_ptr<stream> connect_local(const std::string& name, event_loop& loop,
                                      boost::system::error_code& failed);
/// Opens a listening socket. `name` is in the abstract namespace: no file remains.
boost::asio::local::stream_protocol::acceptor listen_local(const std::string& name,
                                                           boost::asio::io_context& context,
                                                           boost::system::error_code& failed);

}  // namespace deft::detail
