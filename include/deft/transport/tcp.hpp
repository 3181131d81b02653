// SPDX-License-Identifier: Apache-2.0
// deft/transport/tcp.hpp: TCP connections as streams. Internal.
#pragma once
#include <deft/transport/address.hpp>
#include <deft/transport/event_loop.hpp>
#include <deft/transport/stream.hpp>

namespace deft::detail {

/// Takes over a connected socket.
std::unique_ptr<stream> tcp_stream(boost::asio::ip::tcp::socket s, event_loop& loop);
/// Opens a socket that is bound, and listens if it should. Throws unavailable if it cannot, with
/// `name` in the message.
boost::asio::ip::tcp::acceptor bind_tcp(const boost::asio::ip::tcp::endpoint& at,
                                        const std::string& name, boost::asio::io_context& context,
                                        bool listens);

}  // namespace deft::detail
