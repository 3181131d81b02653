// SPDX-License-Identifier: Apache-2.0
// deft/transport/connection.hpp: one authenticated stream of messages between two processes.
#pragma once
#include <deft/transport/handshake.hpp>
#include <deft/transport/message.hpp>
#include <memory>

namespace deft {

namespace detail {
class connection_state;
}

/// Both ends of a connection look the same once it stands. Any thread may send; one thread at a
/// time receives.
class connection {
 public:
  explicit connection(std::shared_ptr<detail::connection_state> state);
  ~connection();
  connection(const connection&) = delete;

  /// Writes `m`, and never waits for the receiver: what the socket does not take at once is written
  /// when it takes more, in order. What waits holds references to the tensors' buffers, whose
  /// elements must not change before they are written; the rest is copied. Thread-safe.
  /// Throws unavailable, naming the peer, if the connection is lost.
  void send(const message& m);

  /// Reads the next message into `m`, whose allocations are reused. Spins before it sleeps.
  /// False if the peer has ended the stream between two messages, or this end was closed.
  /// Throws deadline_exceeded; unavailable if the stream broke; data_loss or resource_exhausted if
  /// the frame is not sound or too large, which ends the connection and tells the peer why.
  bool receive(message& m, deadline until = no_deadline);

  /// What try_receive found.
  enum class arrival { nothing, something, end };
  /// As receive, but without waiting; what has arrived of a message is kept for the next call.
  arrival try_receive(message& m);

  /// The peer waits for what somebody else makes, and as a rule sends nothing until it has it: that
  /// its next message comes soon is not to be hoped for. Each has an end.
  void begin_silence();
  void end_silence();

  /// Waits until everything that was sent is written, or the connection is lost. False if the time
  /// was over first.
  bool drain(deadline until);
  /// Bytes that wait until the socket takes more.
  std::size_t queued() const;

  /// Ends both directions and drops what is still queued: afterwards nothing refers to a tensor
  /// that was sent. Wakes who receives. Thread-safe.
  void close();
  /// Nothing can be sent any more.
  bool lost() const;

  const peer_info& peer() const;

 private:
  std::shared_ptr<detail::connection_state> state_;
};

}  // namespace deft
