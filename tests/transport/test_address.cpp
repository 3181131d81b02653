// SPDX-License-Identifier: Apache-2.0
#include <deft/transport/address.hpp>

#include "testing.hpp"

TEST_CASE("the addresses of all interfaces are recognized") {
  for (const char* address : {"0.0.0.0:7", "[::]:7", "[0:0:0:0:0:0:0:0]:7"})
    CHECK(deft::detail::is_any_address(address));
  for (const char* address : {"127.0.0.1:7", "[::1]:7", "0.0.0.0", "host:0", ":0", ""})
    CHECK(!deft::detail::is_any_address(address));
}

TEST_CASE("loopback is resolved without a resolver") {
  for (const char* address : {":7", "localhost:7", "127.0.0.1:7"}) {
    const auto found = deft::detail::resolve(address);
    REQUIRE(found.size() == 1);
    CHECK(found[0].address().is_loopback());
  }
}
