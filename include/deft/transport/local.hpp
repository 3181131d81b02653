// SPDX-License-Identifier: Apache-2.0
// deft/transport/local.hpp: connections within a machine as streams: a local socket, and shared
// memory for what is large. Internal.
#pragma once
#include <deft/transport/asio.hpp>
#include <deft/transport/event_loop.hpp>
#include <deft/transport/shared_slots.hpp>
#include <deft/transport/stream.hpp>
#include <string>

namespace deft::detail {

/// Pieces of a write from here on go through shared memory.
inline constexpr std::size_t large_piece = 64 * 1024;

/// Within which local sockets reach each other: the same number in all processes of one boot of a
/// machine and one network namespace. 0: unknown, or the environment's DEFT_LOCAL_SOCKETS is 0.
std::uint64_t local_reach();

/// Takes over a connected socket.
std::unique_ptr<stream> local_stream(boost::asio::local::stream_protocol::socket s,
                                     event_loop& loop);
/// A stream to who listens as `name`, or the reason why there is none. Does not wait.
std::unique_ptr<stream> connect_local(const std::string& name, event_loop& loop,
                                      boost::system::error_code& failed);
/// A bound and listening socket. `name` is of no file: it is gone with the socket.
boost::asio::local::stream_protocol::acceptor listen_local(const std::string& name,
                                                           boost::asio::io_context& context,
                                                           boost::system::error_code& failed);

}  // namespace deft::detail
