// SPDX-License-Identifier: Apache-2.0
// tests/transport/hosts.hpp: names with the addresses that a test gives them.
#pragma once
#include <deft/transport/address.hpp>
#include <map>
#include <string>
#include <vector>

namespace testing {

/// While it lives, these names are known, and no others but numbers.
class known_hosts {
 public:
  explicit known_hosts(std::map<std::string, std::vector<std::string>> all) {
    deft::detail::resolve_by([all](const std::string& host) {
      std::vector<boost::asio::ip::address> found;
      const auto at = all.find(host);
      boost::system::error_code no_number;
      const auto number = boost::asio::ip::make_address(host, no_number);
      if (!no_number)
        found.push_back(number);
      else if (at == all.end())
        deft::ext::fail(deft::errc::unavailable, "cannot resolve host \"", host, "\"");
      else
        for (const auto& a : at->second) found.push_back(boost::asio::ip::make_address(a));
      return found;
    });
  }
  ~known_hosts() { deft::detail::resolve_by(nullptr); }
  known_hosts(const known_hosts&) = delete;
};

}  // namespace testing
