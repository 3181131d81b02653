// SPDX-License-Identifier: Apache-2.0
// deft/transport/address.hpp: parsing and resolving "host:port". Internal.
#pragma once
#include <deft/core/error.hpp>
#include <deft/transport/asio.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace deft::detail {

/// Splits "host:port" or "[::1]:80" into host and port. Throws invalid_argument.
std::pair<std::string, std::string> split_address(const std::string& address);
/// The endpoints that `address` resolves to, IPv4 first; an empty host is loopback. Throws
/// unavailable if the host cannot be resolved, invalid_argument if the address is malformed.
std::vector<boost::asio::ip::tcp::endpoint> resolve(const std::string& address);
/// As resolve, without waiting: calls `then` at once if the host is a number, else on a thread that
/// runs `context`.
void resolve_on(
    boost::asio::io_context& context, const std::string& address,
    std::function<void(std::vector<boost::asio::ip::tcp::endpoint>, std::shared_ptr<const error>)>
        then);
/// Whether `address` is "0.0.0.0:port" or "[::]:port", on which a server listens at all interfaces.
bool is_any_address(const std::string& address);
/// Replaces the system's resolver by one that tests provide; null for none.
using host_resolver = std::function<std::vector<boost::asio::ip::address>(const std::string& host)>;
void resolve_by(host_resolver r);
/// The text of an endpoint: "127.0.0.1:2222", "[::1]:2222".
std::string text_of(const boost::asio::ip::tcp::endpoint& e);
/// The protocol of the socket `fd`, IPv4 or IPv6.
boost::asio::ip::tcp protocol_of(int fd);
/// The system's message for the errno `e`.
std::string text_of_errno(int e);

}  // namespace deft::detail
