// SPDX-License-Identifier: Apache-2.0
// deft/transport/message.hpp: messages between processes, deadlines, and limits.
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

namespace deft::ext {

/// A point in time at which a wait ends.
using deadline = std::chrono::steady_clock::time_point;
inline constexpr deadline no_deadline = deadline::max();
/// The deadline `d` from now; no_deadline if that would overflow.
inline deadline deadline_in(std::chrono::nanoseconds d) {
  auto now = std::chrono::steady_clock::now();
  return d > no_deadline - now ? no_deadline : now + d;
}

/// `d` moved later by `more`; no_deadline if that would overflow.
inline deadline later(deadline d, std::chrono::nanoseconds more) {
  return more > no_deadline - d ? no_deadline : d + more;
}

/// The kind of a message. 0 to 15 are those of transport; session/ numbers its own from
/// `first_free` on.
enum class message_kind : std::uint16_t {
  none = 0,
  hello = 1,      ///< handshake: a client introduces itself
  challenge = 2,  ///< handshake: the server introduces itself, and asks for a proof
  proof = 3,      ///< handshake: the client's proof that it knows the secret
  welcome = 4,    ///< handshake: accepted, with the server's proof
  refused = 5,    ///< why the connection ends: a code and a sentence
  error = 6,      ///< an answer: the call failed; see encode_error
  reply = 7,      ///< an answer
  heartbeat = 8,  ///< a sign of life after the handshake; handled within transport
  settle = 9,     ///< handshake: an authenticated client chooses this connection
  credit = 10,    ///< returns credit for processed messages; handled within transport
  first_free = 16,
};

/// One message. Small values go into `meta` through an archive; tensors travel as they are.
struct message {
  message_kind kind = message_kind::none;
  std::uint32_t flags = 0;    ///< meaning depends on the kind
  std::uint64_t id = 0;       ///< of the call and its answer; 0: no answer is expected
  std::uint64_t session = 0;  ///< meaning depends on the kind
  std::uint64_t step = 0;     ///< meaning depends on the kind
  /// In a received message: how many threads of this host, besides its sender, spin until it is
  /// handled, and for how many more microseconds the first of them will.
  std::uint8_t spinning = 0, spinning_for = 0;
  /// Is subject to flow control, and waits at its sender for credit: see credit_window.
  bool takes_credit = false;
  /// In a received message that took credit: returns the credit when the last reference to it is
  /// dropped, which must happen without locks held.
  std::shared_ptr<const void> credit;
  std::vector<std::byte> meta;
  std::vector<any_array> tensors;  ///< on the host

  message() = default;
  explicit message(message_kind k, std::uint64_t call = 0) : kind(k), id(call) {}
  /// Makes the message empty, but keeps its allocations.
  void clear();
};

/// Limits of the messages that a reader accepts, checked before anything is allocated.
struct wire_limits {
  std::uint64_t meta = std::uint64_t{64} << 20;     ///< bytes
  std::uint32_t tensors = 65'536;                   ///< in one message
  std::uint64_t payload = std::uint64_t{64} << 30;  ///< bytes of all tensors of a message
  /// The limits until the peer has been authenticated.
  static constexpr wire_limits before_authentication() { return {std::uint64_t{64} << 10, 0, 0}; }
};

/// Fills `m` with the answer that call `id` failed: code, reason, message, node, device and source
/// location of `e`.
void encode_error(message& m, std::uint64_t id, const error& e);
/// The error in a message of kind `error`; data_loss if it cannot be decoded. A code that
/// this process does not know becomes `unknown`, a reason `none`.
error decode_error(const message& m);

}  // namespace deft::ext
