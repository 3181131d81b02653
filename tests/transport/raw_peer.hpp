// SPDX-License-Identifier: Apache-2.0
// tests/transport/raw_peer.hpp: one end of a connection whose messages a test writes by hand.
#pragma once
#include <deft/transport/connection_state.hpp>

#include "wire.hpp"

namespace testing {

class raw_peer {
 public:
  explicit raw_peer(std::unique_ptr<detail::stream> s)
      : state_(std::make_shared<detail::connection_state>(std::move(s), wire_limits{})) {}
  explicit raw_peer(const std::string& address) : raw_peer(bare_socket(address).stream()) {}
  ~raw_peer() { state_->close(); }
  raw_peer(const raw_peer&) = delete;

  void say(message_kind kind, std::vector<std::byte> meta = {}) {
    message m(kind);
    m.meta = std::move(meta);
    state_->send(m);
  }
  message hear() {
    message m;
    REQUIRE(state_->receive(m, soon()));
    return m;
  }
  /// The other end hangs up.
  bool hears_the_end() {
    message m;
    return !state_->receive(m, soon());
  }
  /// What it says instead of a message.
  std::string refusal() {
    message m;
    return error_of([&] { state_->receive(m, soon()); });
  }
  detail::connection_state& state() { return *state_; }

 private:
  const std::shared_ptr<detail::connection_state> state_;
};

/// What a hello or a challenge says.
struct introduction_by_hand {
  std::string name;
  std::uint64_t incarnation = 0;
  bool has_secret = false;
  std::uint64_t catalog = 0, reach = 0;

  std::vector<std::byte> meta() const {
    const credit_window window;
    return to_bytes(name, incarnation, std::uint64_t{0}, catalog, std::array<std::uint8_t, 32>{},
                    has_secret, std::uint32_t{0}, window.bytes, window.frames, reach);
  }
};

}  // namespace testing
