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
  /// Waits until the other end closes the connection.
  bool hears_the_end() {
    message m;
    return !state_->receive(m, soon());
  }
  /// The reason of the refusal that comes in place of a message.
  std::string refusal() {
    message m;
    return error_of([&] { state_->receive(m, soon()); });
  }
  detail::connection_state& state() { return *state_; }

 private:
  const std::shared_ptr<detail::connection_state> state_;
};

}  // namespace testing
