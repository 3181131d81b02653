// SPDX-License-Identifier: Apache-2.0
// deft/transport/connection.hpp: one authenticated stream of messages between two processes.
#pragma once
#include <atomic>
#include <deft/transport/handshake.hpp>
#include <deft/transport/message.hpp>
#include <memory>

namespace deft::ext {}  // namespace deft::ext

namespace deft::detail {
class connection_state;
}

namespace deft::ext {

/// Both ends have the same interface once the connection is established. Any thread may send; one
/// thread at a time receives.
class connection {
 public:
  explicit connection(std::shared_ptr<detail::connection_state> state);
  ~connection();
  connection(const connection&) = delete;

  /// Sends `m` without waiting for the receiver: what the socket does not take at once is queued,
  /// and written in order when it takes more. The queue refers to the tensors' buffers, whose
  /// elements must not change before they are written; the rest is copied. Thread-safe. Throws
  /// unavailable, naming the peer, if the connection is lost.
  void send(const message& m);

  /// Reads the next message into `m`, whose allocations are reused. Spins before it sleeps. Returns
  /// false if the peer ended the stream between two messages, or if this end was closed. Throws
  /// deadline_exceeded; unavailable if the stream broke; data_loss or resource_exhausted if the
  /// frame is invalid or too large, which ends the connection and tells the peer why.
  bool receive(message& m, deadline until = no_deadline);

  /// The result of try_receive.
  enum class arrival { nothing, something, end };
  /// As receive, but without waiting; a message that has arrived in part is kept for the next call.
  arrival try_receive(message& m);

  /// Says that the peer waits for something that others produce, and is unlikely to send anything
  /// soon, so that no thread spins for its next message. Each suspend_spinning needs a
  /// resume_spinning.
  void suspend_spinning();
  void resume_spinning();

  /// Waits until everything sent has been written, or the connection is lost. False if the deadline
  /// passed first.
  bool drain(deadline until);
  /// Copies what is still to be written and is borrowed (any_array::view): afterwards nothing
  /// refers to the lender's memory. Throws std::bad_alloc if there is no memory for that.
  void copy_borrowed();
  /// Bytes that are queued, as the socket has not taken them yet.
  std::size_t queued() const;

  /// Counts a call of the peer until end_call, with the bytes of its message. Throws
  /// resource_exhausted, without counting it, if there are most_calls, or if their bytes are more
  /// than most_bytes().
  void begin_call(std::size_t bytes);
  void end_call(std::size_t bytes) noexcept;
  static constexpr std::size_t most_calls = 65'536;
  /// How much memory a peer may make this process keep for its calls, and likewise for answers that
  /// it does not read, before further ones are refused: a quarter of the machine's. Beyond twice as
  /// many unread bytes, the connection is closed in place of a refusal.
  static std::size_t most_bytes();

  /// Ends both directions and drops what is queued: afterwards nothing refers to a tensor that was
  /// sent. Wakes a thread that receives. Thread-safe.
  void close();
  /// Whether the connection is lost or closed, so that nothing can be sent any more.
  bool lost() const;

  const peer_info& peer() const;

 private:
  std::shared_ptr<detail::connection_state> state_;
  std::atomic<std::size_t> calls_{0}, call_bytes_{0};
};

}  // namespace deft::ext
