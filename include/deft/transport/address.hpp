// SPDX-License-Identifier: Apache-2.0
// deft/transport/address.hpp: "host:port", and what it stands for. Internal.
#pragma once
#include <deft/transport/asio.hpp>
#include <string>
#include <utility>
#include <vector>

namespace deft::detail {

/// "host:port" taken apart; "[::1]:80" too. Throws invalid_argument.
std::pair<std::string, std::string> split_address(const std::string& address);
/// What `address` stands for, IPv4 first; an empty host is loopback. Throws unavailable if the name
/// is not known, invalid_argument if it is malformed.
std::vector<boost::asio::ip::tcp::endpoint> resolve(const std::string& address);
/// "127.0.0.1:2222", "[::1]:2222".
std::string text_of(const boost::asio::ip::tcp::endpoint& e);
/// IPv4 or IPv6, as the socket `fd` is.
boost::asio::ip::tcp protocol_of(int fd);
/// What errno number `e` means.
std::string text_of_errno(int e);

}  // namespace deft::detail
