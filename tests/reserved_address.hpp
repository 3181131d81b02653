// SPDX-License-Identifier: Apache-2.0
// tests/reserved_address.hpp: addresses at which nobody listens.
#pragma once
#include <deft/core/file.hpp>
#include <deft/transport/listener.hpp>
#include <string>

namespace testing {

/// A port of this machine that refuses callers until the test listens there. No other process is
/// given it meanwhile.
struct reserved_address {
  deft::ext::file_descriptor socket{deft::ext::reserve_address("localhost:0")};
  std::string text = deft::ext::address_of_socket(socket.get());
};

}  // namespace testing
