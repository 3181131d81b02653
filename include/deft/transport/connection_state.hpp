// SPDX-License-Identifier: Apache-2.0
// deft/transport/connection_state.hpp: the state of a connection. Internal.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deft/transport/connection.hpp>
#include <deft/transport/event_loop.hpp>
#include <deft/transport/frame.hpp>
#include <deft/transport/spin.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace deft::detail {

/// Shared by the connection, its reader, and the handlers of the event loop.
class connection_state final : public loop_member,
                               public std::enable_shared_from_this<connection_state> {
 public:
  connection_state(std::unique_ptr<stream> s, const wire_limits& limits);

  void send(const message& m);
  /// One thread at a time.
  bool receive(message& m, deadline until);
  connection::arrival try_receive(message& m);
  /// Whether try_receive has just read a part of a message, of which the rest is yet to arrive.
  bool has_received_part() const { return part_; }
  bool drain(deadline until);
  void copy_borrowed();
  std::size_t queued() const;
  /// Whether something is queued for writing.
  bool writes() const;
  void close();
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// The reason, as a sentence.
  std::string why_lost() const;
  const stream& source() const { return *stream_; }
  event_loop& loop() const { return stream_->loop(); }
  /// Sets the function to call, on a thread of the loop, when there may be something to receive:
  /// once each time the connection is armed. Null: none.
  void on_event(std::function<void()> tell);
  /// Tells the peer why the connection ends. What it still sends is dropped, until it ends the
  /// connection too or close is called.
  void refuse(const error& why);
  /// The error with which the peer refused; null if it did not.
  std::shared_ptr<const error> refusal() const { return refusal_; }
  void set_limits(const wire_limits& limits) { reader_.set_limits(limits); }
  /// Applies the terms exchanged in the handshake, and begins the heartbeats.
  void agree(const peer_terms& own, const peer_terms& of_peer);
  /// See connection::suspend_spinning.
  void add_spin_suspensions(int by) { spin_suspensions_.fetch_add(by, std::memory_order_relaxed); }
  bool spins_suspended() const { return spin_suspensions_.load(std::memory_order_relaxed) > 0; }
  /// Whether close was called on this end.
  bool closed_here() const { return closed_.load(std::memory_order_acquire); }

  void arm() override;
  void beat(std::chrono::steady_clock::time_point now) override;
  std::chrono::milliseconds beat_interval() const override;

  peer_info peer;  ///< set by the handshake, then constant

 private:
  void event(bool sound);
  /// A queued frame, or the rest of one.
  struct waiting {
    std::vector<std::byte> head;  ///< header, metadata and descriptors
    std::vector<any_array> tensors;
    std::size_t written = 0;
    std::size_t total = 0;
  };
  /// Who may write to the stream.
  enum class writer { none, sender, loop };
  enum class progress { all, some, broken };

  void send(const message& m, std::unique_lock<std::mutex>& lock);
  void hold(const message& m);
  void drop_held();
  void give_back(const credit& c);
  void note_credit(message& m);
  void free_credit(std::uint64_t bytes);
  waiting keep(const message& m, const header_block& head,
               const std::vector<std::byte>& descriptors, std::size_t written) const;
  void mark_spinning(header_block& head, message_kind kind) const;
  std::size_t gather(const message& m, const header_block& head);
  progress write_pieces(std::vector<iovec>& pieces, std::size_t& written, std::size_t total,
                        bool spin);
  progress write_queue(std::unique_lock<std::mutex>& lock, int most);
  void end_writing();
  void hand_over(std::unique_lock<std::mutex>& lock);
  void write_when_possible();
  void wait_to_write();
  void stop_writing(std::unique_lock<std::mutex>& lock);
  void break_off(std::string_view why) noexcept;
  [[noreturn]] void throw_lost();
  connection::arrival step(message& m);
  connection::arrival drop_input();

  std::unique_ptr<stream> stream_;
  frame_reader reader_;
  arrival_wait wait_;  ///< used by the receiving thread
  bool part_ = false;  ///< of the receiving thread

  mutable std::mutex guard_;
  std::condition_variable changed_;
  writer writer_ = writer::none;
  bool writing_ = false;  ///< the writer is within a call of stream::write
  int copiers_ = 0;       ///< calls of copy_borrowed that wait for the end of it
  std::deque<waiting> queue_;
  std::size_t queued_ = 0;  ///< bytes
  credit_account on_the_way_;
  std::deque<message> held_;  ///< messages that wait for credit
  std::size_t held_bytes_ = 0;
  std::string why_lost_;
  std::atomic<bool> lost_{false}, closed_{false}, refused_{false};
  std::atomic<int> spin_suspensions_{0};
  std::shared_ptr<const error> refusal_;  ///< used by the receiving thread

  std::mutex event_guard_;
  bool armed_ = false, listed_ = false;  ///< listed: as unarmed, with the loop
  std::shared_ptr<const std::function<void()>> tell_;

  std::chrono::milliseconds timeout_{0}, interval_{0};
  std::chrono::steady_clock::time_point last_heard_{}, last_said_{};  ///< of beat
  std::atomic<bool> received_{false}, sent_{false};                   ///< since the last beat

  std::mutex credit_guard_;
  credit_account taken_;  ///< for what the peer sent

  // Used by the writer only.
  std::vector<iovec> pieces_;
  std::vector<std::byte> descriptors_, gathered_;
};

}  // namespace deft::detail
