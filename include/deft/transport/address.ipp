// SPDX-License-Identifier: Apache-2.0
// deft/transport/address.ipp: parsing and resolving addresses.
#pragma once
#include <sys/socket.h>

#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/transport/address.hpp>
#include <deft/transport/lookups.hpp>
#include <mutex>
#include <system_error>

namespace deft::detail {

std::string text_of_errno(int e) { return std::generic_category().message(e); }

std::pair<std::string, std::string> split_address(const std::string& address) {
  auto colon = address.rfind(':');
  if (colon == address.npos)
    fail(errc::invalid_argument, "\"", address, "\" is not a valid address: expected host:port");
  std::string host = address.substr(0, colon), port = address.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of("[]:/ ") != host.npos)
    fail(errc::invalid_argument, "\"", address, "\" is not a valid address: \"", host,
         "\" is not a host name or [IPv6 address]");
  bool digits = !port.empty() && port.size() <= 5 &&
                std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || std::stoi(port) > 65535)
    fail(errc::invalid_argument, "\"", address, "\" is not a valid address: \"", port,
         "\" is not a port (0 to 65535)");
  return {host, port};
}

namespace {
using boost::asio::ip::tcp;

/// The host and port to look up.
std::pair<std::string, std::string> parts_of(const std::string& address) {
  auto parts = split_address(address);
  // Loopback needs no resolver (RFC 6761, 6.3): a bare container may not resolve any name.
  if (parts.first.empty() || parts.first == "localhost") parts.first = "127.0.0.1";
  return parts;
}

/// Never destroyed: lookups may be under way on other threads while the process exits.
struct resolver_setting {
  std::mutex guard;
  host_resolver by;
};
resolver_setting& resolver() {
  static auto& s = *new resolver_setting;
  return s;
}

}  // namespace

void resolve_by(host_resolver r) {
  std::lock_guard lock(resolver().guard);
  resolver().by = std::move(r);
}

bool is_any_address(const std::string& address) {
  boost::system::error_code no_number;
  std::string host;
  if (failure_of([&] { host = split_address(address).first; })) return false;
  const auto number = boost::asio::ip::make_address(host, no_number);
  return !no_number && number.is_unspecified();
}

std::vector<tcp::endpoint> resolve(const std::string& address) {
  const auto [host, port] = parts_of(address);
  host_resolver by;
  {
    std::lock_guard lock(resolver().guard);
    by = resolver().by;
  }
  if (by) {
    std::vector<tcp::endpoint> all;
    for (const auto& a : by(host)) all.emplace_back(a, static_cast<std::uint16_t>(std::stoi(port)));
    return all;
  }
  boost::asio::io_context io;
  boost::system::error_code failed;
  const auto found = tcp::resolver(io).resolve(host, port, tcp::resolver::numeric_service, failed);
  if (failed)
    fail(errc::unavailable, "cannot resolve host \"", host, "\" of \"", address,
         "\": ", failed.message());
  std::vector<tcp::endpoint> all(found.begin(), found.end());
  std::stable_partition(all.begin(), all.end(),
                        [](const tcp::endpoint& e) { return e.address().is_v4(); });
  return all;
}

void resolve_on(
    boost::asio::io_context& context, const std::string& address,
    std::function<void(std::vector<tcp::endpoint>, std::shared_ptr<const error>)> then) {
  const auto [host, port] = parts_of(address);
  boost::system::error_code no_number;
  const auto number = boost::asio::ip::make_address(host, no_number);
  if (!no_number)
    return then({tcp::endpoint(number, static_cast<std::uint16_t>(std::stoi(port)))}, nullptr);
  static auto& all = *new lookups(resolve);
  all.ask(context, address, std::move(then));
}

std::string text_of(const boost::asio::ip::tcp::endpoint& e) {
  const auto host = e.address().to_string();
  return e.address().is_v6() ? str("[", host, "]:", e.port()) : str(host, ":", e.port());
}

tcp protocol_of(int fd) {
  int family = 0;
  socklen_t size = sizeof family;
  getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  return family == AF_INET6 ? tcp::v6() : tcp::v4();
}

}  // namespace deft::detail
