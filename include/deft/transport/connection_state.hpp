// SPDX-License-Identifier: Apache-2.0
// deft/transport/connection_state.hpp: the inside of a connection. Internal.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deft/transport/connection.hpp>
#include <deft/transport/frame.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace deft::detail {

/// Shared by the connection and, while bytes are queued, by the I/O thread.
class connection_state : public std::enable_shared_from_this<connection_state> {
 public:
  connection_state(std::unique_ptr<stream> s, const wire_limits& limits);

  void send(const message& m);
  bool receive(message& m, deadline until);
  connection::arrival try_receive(message& m);
  bool drain(deadline until);
  std::size_t queued() const;
  void close();
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  int handle() const { return stream_->handle(); }
  const stream& source() const { return *stream_; }
  /// Tells the peer why, as far as it listens, and ends.
  void refuse(const error& why);
  /// What the peer refused with, if it did.
  std::shared_ptr<const error> refusal() const { return refusal_; }
  void set_limits(const wire_limits& limits) { reader_.set_limits(limits); }
  /// Whether close was called here.
  bool closed_here() const { return closed_.load(std::memory_order_acquire); }

  peer_info peer;  ///< filled by the handshake, then left alone

 private:
  /// A frame, or the rest of one, that waits for the I/O thread.
  struct waiting {
    std::vector<std::byte> head;  ///< header, metadata and descriptors
    std::vector<any_array> tensors;
    std::size_t written = 0;
    std::size_t total = 0;
  };
  /// Who may write to the stream.
  enum class writer { none, sender, io_thread };
  enum class progress { all, some, broken };

  waiting keep(const message& m, const header_block& head,
               const std::vector<std::byte>& descriptors, std::size_t written) const;
  progress write_pieces(std::vector<iovec>& pieces, std::size_t& written, std::size_t total,
                        bool spin);
  progress write_queue(std::unique_lock<std::mutex>& lock, int most);
  void hand_over(std::unique_lock<std::mutex>& lock);
  void stop_writing(std::unique_lock<std::mutex>& lock);
  void break_off(const std::string& why);
  [[noreturn]] void throw_lost();
  connection::arrival step(message& m);

  std::unique_ptr<stream> stream_;
  frame_reader reader_;
  arrival_wait wait_;  ///< of who receives

  mutable std::mutex guard_;
  std::condition_variable changed_;
  writer writer_ = writer::none;
  bool writing_ = false;  ///< the writer is within a call of stream::write
  std::deque<waiting> queue_;
  std::size_t queued_ = 0;  ///< bytes
  std::string why_lost_;
  std::atomic<bool> lost_{false}, closed_{false};
  std::shared_ptr<const error> refusal_;  ///< of who receives

  // Of the writer.
  std::vector<iovec> pieces_;
  std::vector<std::byte> descriptors_;
};

}  // namespace deft::detail
