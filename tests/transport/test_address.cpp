// SPDX-License-Identifier: Apache-2.0
#include <deft/transport/address.hpp>

#include "testing.hpp"

TEST_CASE("loopback is resolved without a resolver") {
  for (const char* address : {":7", "localhost:7", "127.0.0.1:7"}) {
    const auto found = deft::detail::resolve(address);
    REQUIRE(found.size() == 1);
    CHECK(found[0].address().is_loopback());
  }
}
