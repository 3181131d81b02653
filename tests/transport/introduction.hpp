// SPDX-License-Identifier: Apache-2.0
// tests/transport/introduction.hpp: the contents of a hello or a challenge, written by hand.
#pragma once
#include <array>
#include <cstdint>
#include <deft/transport/archive.hpp>
#include <deft/transport/credit.hpp>
#include <string>
#include <vector>

namespace testing {

struct introduction_by_hand {
  std::string name;
  std::uint64_t incarnation = 0;
  bool has_secret = false;
  std::uint64_t catalog = 0, reach = 0;

  std::vector<std::byte> meta() const {
    const deft::ext::credit_window window;
    return deft::ext::to_bytes(name, incarnation, std::uint64_t{0}, false, catalog,
                               std::array<std::uint8_t, 32>{}, has_secret, std::uint32_t{0},
                               window.bytes, window.frames, reach);
  }
};

/// The contents of a proof without a secret, of a process with these operations.
inline std::vector<std::byte> proof_by_hand(const std::vector<std::string>& catalog = {}) {
  return deft::ext::to_bytes(std::vector<std::uint8_t>(), catalog, std::vector<std::string>(),
                             std::uint64_t{0});
}

}  // namespace testing
