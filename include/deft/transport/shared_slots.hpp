// SPDX-License-Identifier: Apache-2.0
// deft/transport/shared_slots.hpp: the shared memory of one direction of a local socket, passed to
// the reader and back slot by slot. Internal.
#pragma once
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deft/transport/asio.hpp>
#include <deft/transport/shared_memory.hpp>
#include <functional>
#include <mutex>
#include <optional>
#include <span>

namespace deft::detail {

inline constexpr std::size_t slot_bytes = std::size_t{1} << 20;
inline constexpr std::size_t slots = 16;

/// How many of the process's file descriptors shared memory uses at most: one for each direction of
/// a connection that uses it. When none is left, data goes through the socket.
std::size_t descriptors_for_memory();

/// One share of descriptors_for_memory().
class memory_share {
 public:
  memory_share() = default;
  memory_share(const memory_share&) = delete;
  ~memory_share() { give_back(); }
  /// Returns false if there is none left.
  bool take() noexcept;
  void give_back() noexcept;

 private:
  bool taken_ = false;
};

/// The result `n` of a system call, or -errno; -EAGAIN if the call should be repeated later.
std::ptrdiff_t result_of_call(std::ptrdiff_t n) noexcept;

/// The end that reads from the peer's memory.
class slot_reader {
 public:
  /// Opens what the peer has sent. If the memory cannot be mapped, no slot is returned, and the
  /// peer sends everything through the socket. Returns what the peer did wrong, or null.
  const char* open(file_descriptor memory, file_descriptor credits) noexcept;
  bool is_open() const noexcept { return memory_.has_value(); }
  /// Where a slot, one of `slots`, begins.
  const std::byte* at(std::size_t slot) const noexcept {
    return memory_->data() + slot * slot_bytes;
  }
  /// Returns a slot, which has been copied out, to the peer. Returns as open does.
  const char* pass(std::uint8_t slot) noexcept { return give_back(std::span(&slot, 1)); }

 private:
  const char* give_back(std::span<const std::uint8_t> some) noexcept;

  memory_share share_;
  std::optional<shared_memory> memory_;
  file_descriptor credits_;  ///< to return slots on
};

/// The end that writes into its own memory: into the slot that was returned last, which is the
/// likeliest to be in caches.
class slot_writer {
 public:
  explicit slot_writer(boost::asio::io_context& context) : waits_(context) {}
  ~slot_writer();
  slot_writer(const slot_writer&) = delete;

  /// The memory, and both ends of the socket on which its slots are returned.
  struct offer {
    shared_memory memory;
    file_descriptor file, mine, of_peer;
  };
  /// Returns nothing if it cannot be made; is_refused() from then on.
  std::optional<offer> make() noexcept;
  /// Uses the offer, which the peer has received.
  void open(offer&& o) noexcept;
  /// The offer could not be sent now.
  void drop_offer() noexcept { share_.give_back(); }
  /// Sends everything through the socket from now on. Returns false.
  bool refuse(int reason) noexcept;

  bool is_open() const noexcept { return memory_.has_value(); }
  /// Whether the peer has mapped the memory.
  bool is_granted() const noexcept { return granted_; }
  bool is_refused() const noexcept { return refused_; }

  /// Looks for returned slots. Returns 1 if one is free, -EAGAIN if not, -EPROTO if the peer
  /// returned one that it does not have, -EPIPE or -ECONNRESET if it has closed its end.
  std::ptrdiff_t take() noexcept;
  bool has_free() const noexcept { return free_ > 0; }
  /// The slot that is filled next: one is free.
  std::uint8_t next() const noexcept { return order_[free_ - 1]; }
  /// Copies as much as fits into it. Returns the number of bytes.
  std::size_t fill(const iovec& piece) noexcept;
  /// Marks it as sent.
  void pass() noexcept;

  /// Calls `then` once slots have been returned; *this must live until then.
  void wait(std::function<void(boost::system::error_code)> then);
  /// Ends waits; from any thread.
  void shut() noexcept;
  /// Frees the memory, after the peer has closed its end.
  void close() noexcept;

 private:
  memory_share share_;
  std::optional<shared_memory> memory_;
  bool granted_ = false, refused_ = false;
  std::array<std::uint8_t, slots> order_{};  ///< the free slots, the one returned last at the end
  std::size_t free_ = 0;                     ///< how many these are
  std::mutex shut_guard_;
  bool shut_ = false;
  file_descriptor returned_;  ///< where slots are returned
  /// Has that descriptor during a wait only, as otherwise each returned slot would wake a thread
  /// that sleeps in the context.
  boost::asio::local::stream_protocol::socket waits_;
};

}  // namespace deft::detail
