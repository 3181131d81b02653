// SPDX-License-Identifier: Apache-2.0
// deft/transport/shared_slots.hpp: the shared memory of one direction of a local socket, which goes
// to the reader and comes back slot by slot. Internal.
#pragma once
#include <sys/uio.h>

#include <cstddef>
#include <deft/transport/asio.hpp>
#include <deft/transport/shared_memory.hpp>
#include <functional>
#include <mutex>
#include <optional>

namespace deft::detail {

inline constexpr std::size_t slot_bytes = std::size_t{1} << 20;
inline constexpr std::size_t slots = 16;

/// Of the descriptors that the process may have, how many shared memory takes at most: one for each
/// direction of a connection that uses it. What finds none left goes through the socket.
std::size_t descriptors_for_memory();

/// One of descriptors_for_memory.
class memory_share {
 public:
  memory_share() = default;
  memory_share(const memory_share&) = delete;
  ~memory_share() { give_back(); }
  /// False if there is none left.
  bool take() noexcept;
  void give_back() noexcept;

 private:
  bool taken_ = false;
};

/// `n` of a system call, or -errno; -EAGAIN where another call may do better.
std::ptrdiff_t result_of_call(std::ptrdiff_t n) noexcept;

/// The end that reads what lies in the peer's memory.
class slot_reader {
 public:
  /// With what the peer has given. Where it cannot be mapped, no slot is given back, and all comes
  /// in the socket. Returns what the peer does wrong; null: nothing.
  const char* open(descriptor memory, descriptor credits) noexcept;
  bool is_open() const noexcept { return memory_.has_value(); }
  /// Where the next slot begins.
  const std::byte* next() const noexcept { return memory_->data() + next_ * slot_bytes; }
  /// The next slot has been copied out. Returns as open does.
  const char* pass() noexcept;

 private:
  const char* give_back(std::size_t n) noexcept;

  memory_share share_;
  std::optional<shared_memory> memory_;
  descriptor credits_;  ///< to give slots back
  std::size_t next_ = 0;
};

/// The end that writes into memory of its own.
class slot_writer {
 public:
  explicit slot_writer(boost::asio::io_context& context) : returned_(context) {}

  /// Memory, and both ends of the socket on which its slots come back.
  struct offer {
    shared_memory memory;
    descriptor file, mine, of_peer;
  };
  /// Nothing where it cannot be made: is_refused from then on.
  std::optional<offer> make() noexcept;
  /// The peer was given it: its memory and its end of the socket. False if it cannot be used.
  bool open(offer&& o) noexcept;
  /// The peer cannot be given it now.
  void drop_offer() noexcept { share_.give_back(); }
  /// From now on all goes through the socket. Returns false.
  bool refuse(int reason) noexcept;

  bool is_open() const noexcept { return memory_.has_value(); }
  /// Whether the peer has mapped it.
  bool is_granted() const noexcept { return granted_; }
  bool is_refused() const noexcept { return refused_; }

  /// Looks for slots that have come back where none is free: 1 if one is, -EAGAIN if not, -EPROTO
  /// if more came than there are, -EPIPE or -ECONNRESET if the peer has let go of them.
  std::ptrdiff_t take() noexcept;
  bool has_free() const noexcept { return free_ > 0; }
  /// Copies what fits to the next slot, which is free. How many bytes.
  std::size_t fill(const iovec& piece) noexcept;
  /// The next slot was sent.
  void pass() noexcept;

  /// Calls `then` once slots have come back.
  void wait(std::function<void(boost::system::error_code)> then);
  /// Ends waits; from any thread.
  void shut() noexcept;
  /// The peer has let go of it.
  void close() noexcept;

 private:
  memory_share share_;
  std::optional<shared_memory> memory_;
  bool granted_ = false, refused_ = false;
  std::size_t next_ = 0;
  std::size_t free_ = 0;  ///< slots
  std::mutex shut_guard_;
  bool shut_ = false;
  boost::asio::local::stream_protocol::socket returned_;  ///< where slots come back
};

}  // namespace deft::detail
