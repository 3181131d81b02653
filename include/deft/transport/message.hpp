// SPDX-License-Identifier: Apache-2.0
// deft/transport/message.hpp: what travels between processes, deadlines, and the bounds of both.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deft/core/any_array.hpp>
#include <deft/core/error.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace deft {

/// A moment up to which something is waited for.
using deadline = std::chrono::steady_clock::time_point;
inline constexpr deadline no_deadline = deadline::max();
/// That long from now. Whatever is too long to count is no_deadline.
inline deadline deadline_in(std::chrono::nanoseconds d) {
  auto now = std::chrono::steady_clock::now();
  return d > no_deadline - now ? no_deadline : now + d;
}

/// So much later, likewise.
inline deadline later(deadline d, std::chrono::nanoseconds more) {
  return more > no_deadline - d ? no_deadline : d + more;
}

/// What a message is. 0 to 15 belong to transport; session/ numbers its own from `first_free` on.
enum class message_kind : std::uint16_t {
  none = 0,
  hello = 1,      ///< handshake: a client says who it is
  challenge = 2,  ///< handshake: the server says who it is, and asks for a proof
  proof = 3,      ///< handshake: the client's proof that it knows the secret
  welcome = 4,    ///< handshake: accepted, with the server's proof
  refused = 5,    ///< one sentence why the connection ends
  error = 6,      ///< an answer: the call failed; see encode_error
  reply = 7,      ///< an answer
  heartbeat = 8,  ///< whoever sent it lives; after the handshake, and seen by nobody above
  settle = 9,     ///< handshake: a welcome client goes on here, where it had the choice
  credit = 10,    ///< so much of what took credit was dealt with; seen by nobody above
  first_free = 16,
};

/// One message. Small values go into `meta` through an archive; tensors travel as they are.
struct message {
  message_kind kind = message_kind::none;
  std::uint32_t flags = 0;    ///< up to the kind
  std::uint64_t id = 0;       ///< of the call, and of its answer; 0: nobody waits for one
  std::uint64_t session = 0;  ///< up to the kind
  std::uint64_t step = 0;     ///< up to the kind
  /// Of what came: how many threads of this host spin until it is done, without its sender, and for
  /// how many more microseconds the first of them does.
  std::uint8_t spinning = 0, spinning_for = 0;
  /// Waits with its sender while too much of its kind is on the way: see credit_window.
  bool takes_credit = false;
  /// Of what came and took credit: the last that refers to it has dealt with the message. To be
  /// dropped without locks.
  std::shared_ptr<const void> credit;
  std::vector<std::byte> meta;
  std::vector<any_array> tensors;  ///< on the host

  message() = default;
  explicit message(message_kind k, std::uint64_t call = 0) : kind(k), id(call) {}
  /// Empty again; keeps what is allocated.
  void clear();
};

/// What a reader accepts. All of it is checked before anything is allocated.
struct wire_limits {
  std::uint64_t meta = std::uint64_t{64} << 20;     ///< bytes
  std::uint32_t tensors = 65'536;                   ///< in one message
  std::uint64_t payload = std::uint64_t{64} << 30;  ///< bytes of all tensors of a message
  /// Before the peer has proved who it is.
  static constexpr wire_limits before_authentication() { return {std::uint64_t{64} << 10, 0, 0}; }
};

/// Fills `m` as the answer that call `id` failed: code, sentence, node, device and place of `e`.
void encode_error(message& m, std::uint64_t id, const error& e);
/// The error that a message of kind `error` carries, or one that says why it cannot be read.
error decode_error(const message& m);

}  // namespace deft
