// SPDX-License-Identifier: Apache-2.0
// deft/transport/local.ipp: streams through a local socket and shared memory.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deft/core/failure.hpp>
#include <deft/core/hash.hpp>
#include <deft/core/log.hpp>
#include <deft/transport/local.hpp>
#include <deft/transport/read_buffer.hpp>
#include <deft/transport/socket_calls.hpp>
#include <mutex>

// A stream is a sequence of records, each a head of 8 bytes:
//
//   0 bytes (32 bit)   4 the sender's processor (16 bit)   6 kind (8 bit)   7 slot, or zero
//
//   in_socket   that many bytes follow
//   in_memory   that many are in that slot of the sender's memory
//   memory      has two descriptors: the memory of this direction, and a socket on which the reader
//               returns slots that it has copied, each as a byte, its number. At first it returns
//               all of them; a reader that cannot map the memory returns none.
//
// The memory holds the elements of large tensors (and equally large metadata). They are copied out,
// once, before they are looked at, as the sender may change them at any time. Slots are returned on
// a socket of their own so that neither direction waits for the reader of the other.

namespace deft::detail {

namespace {

using local_protocol = boost::asio::local::stream_protocol;

enum class record : std::uint8_t { in_socket = 1, in_memory = 2, memory = 3 };

struct record_head {
  std::uint32_t bytes;
  std::uint16_t processor;
  record kind;
  std::uint8_t slot;
};
static_assert(sizeof(record_head) == 8);

class local_stream_t final : public stream {
 public:
  local_stream_t(local_protocol::socket s, event_loop& loop)
      : socket_(std::move(s)), loop_(loop), space_(loop.context()), memory_out_(loop.context()) {
    boost::system::error_code ignored;
    socket_.non_blocking(true, ignored);
  }

  std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
    const auto n = read_some(static_cast<std::byte*>(to), most);
    const std::size_t buffered = buffer_.size();
    const bool unread = left_ > 0 ? in_memory_ || buffered > 0 : buffered >= sizeof(record_head);
    buffer_.rest();
    if (unread != unread_.load(std::memory_order_relaxed)) unread_.store(unread);
    return unread && !reading_->tell_of_buffer(loop_) ? -ENOMEM : n;
  }
  std::ptrdiff_t write(const iovec* pieces, int count) noexcept override {
    if (unsound_.load(std::memory_order_relaxed)) return -EPROTO;
    waits_for_slot_ = false;
    return unsent_bytes_ > 0 ? write_owed(pieces, count) : write_record(pieces, count);
  }
  bool has_unread() const noexcept override {
    boost::system::error_code failed;
    return unread_.load(std::memory_order_relaxed) || socket_.available(failed) > 0;
  }
  void wait(direction d, std::function<void()> then) override {
    using boost::asio::socket_base;
    if (d == direction::in) {
      reading_->begin(std::move(then), [this] {
        socket_.async_wait(socket_base::wait_read,
                           [w = reading_](boost::system::error_code) { w->tell(true); });
      });
      if (unread_.load() && !reading_->tell_of_buffer(loop_)) throw std::bad_alloc();
      return;
    }
    if (waits_for_slot_)
      memory_out_.wait([then = std::move(then)](boost::system::error_code) { then(); });
    else
      wait_to_write(std::move(then));
  }
  void shut(bool both) noexcept override {
    using boost::asio::socket_base;
    boost::system::error_code ignored;
    socket_.shutdown(both ? socket_base::shutdown_both : socket_base::shutdown_send, ignored);
    if (both) memory_out_.shut();  // ends a wait for a slot
  }
  bool is_drained() const noexcept override {
    return drained_ && !unread_.load(std::memory_order_relaxed);
  }
  bool on_this_host() const noexcept override { return true; }
  bool shares_processor() const noexcept override { return sender_ == sched_getcpu(); }
  event_loop& loop() const noexcept override { return loop_; }
  std::string why(int failed) const override {
    const char* const sentence = unsound_.load(std::memory_order_acquire);
    return sentence ? sentence : stream::why(failed);
  }

 private:
  // With their heads, as many as Asio writes at once.
  static constexpr int most_pieces = 62;
  // Of a record in the socket: a large piece is cut so that the rest can use memory that becomes
  // available meanwhile.
  static constexpr std::size_t most_in_socket = 256 * 1024;
  /// A socket takes this many bytes entirely or not at all: a fraction of its send buffer, whose
  /// least size is 4,608 bytes, and of the 16 KB that the system keeps together in any case.
  std::size_t atomic_write_limit() const noexcept {
    int buffer = 0;
    socklen_t size = sizeof buffer;
    ::getsockopt(handle(), SOL_SOCKET, SO_SNDBUF, &buffer, &size);
    return static_cast<std::size_t>(std::clamp(buffer / 4, 1024, 8192));
  }

  /// A wait to read. The socket signals what arrives in it, but not what is in the buffer already:
  /// that is signalled here, also if it was read from the socket during the wait.
  class reading_wait : public std::enable_shared_from_this<reading_wait> {
   public:
    /// `ask` starts a wait on the socket.
    template <class F>
    void begin(std::function<void()> then, F ask) {
      std::lock_guard lock(guard_);
      if (!asked_) ask();
      asked_ = true;
      then_ = std::move(then);
      waits_.store(true);
    }
    void tell(bool by_socket) {
      std::unique_lock lock(guard_);
      if (by_socket) asked_ = false;
      waits_.store(false, std::memory_order_relaxed);
      const auto then = std::exchange(then_, nullptr);
      lock.unlock();
      if (then) then();
    }
    /// Returns false if there is no memory for that.
    bool tell_of_buffer(event_loop& loop) noexcept {
      if (!waits_.load() || !waits_.exchange(false)) return true;
      return !failure_of(
          [&] { boost::asio::post(loop.context(), [w = shared_from_this()] { w->tell(false); }); });
    }

   private:
    std::mutex guard_;
    std::function<void()> then_;
    std::atomic<bool> waits_{false};
    bool asked_ = false;
  };

  /// The peer violates the protocol.
  std::ptrdiff_t protocol_violation(const char* sentence) noexcept {
    unsound_.store(sentence, std::memory_order_release);
    return -EPROTO;
  }

  // ---- reading

  std::ptrdiff_t read_some(std::byte* to, std::size_t most) noexcept {
    if (unsound_.load(std::memory_order_relaxed)) return -EPROTO;
    for (;;) {
      if (left_ > 0 && in_memory_) return read_memory(to, most);
      if (left_ > 0 && buffer_.size() > 0) {
        const std::size_t n = buffer_.take(to, std::min(left_, most));
        left_ -= n;
        return static_cast<std::ptrdiff_t>(n);
      }
      std::ptrdiff_t n = 0;
      if (std::min(left_, most) >= read_buffer::direct_size) {
        n = read_from(socket_, to, std::min(left_, most));
        if (n > 0) left_ -= static_cast<std::size_t>(n);
        return n;
      }
      if (left_ == 0 && buffer_.size() >= sizeof(record_head)) {
        if (n = begin_record(); n < 0) return n;
      } else if (n = fill(); n <= 0) {
        return n;
      }
    }
  }

  /// Reads more into the buffer, which holds at most part of a head.
  std::ptrdiff_t fill() noexcept {
    const std::span<std::byte> space = buffer_.space();
    if (space.empty()) return -ENOMEM;
    iovec into{space.data(), space.size()};
    msghdr m{};
    m.msg_iov = &into;
    m.msg_iovlen = 1;
    // Only the descriptors of the memory are received; the system closes any others.
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
    if (!memory_received_) {
      m.msg_control = control;
      m.msg_controllen = sizeof control;
    }
    const std::ptrdiff_t n =
        result_of_call(::recvmsg(handle(), &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    if (n <= 0) return n;
    drained_ = static_cast<std::size_t>(n) < space.size();
    buffer_.add(static_cast<std::size_t>(n));
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        given_[std::min(i, given_.size() - 1)] = file_descriptor(fd);
      }
    }
    return n;
  }

  std::ptrdiff_t begin_record() noexcept {
    record_head h;
    buffer_.take(&h, sizeof h);
    sender_ = h.processor;
    if (h.slot >= (h.kind == record::in_memory ? slots : 1))
      return protocol_violation("it sent an invalid record on its local socket");
    switch (h.kind) {
      case record::in_socket:
        if (h.bytes == 0)
          return protocol_violation("it sent an invalid record on its local socket");
        left_ = h.bytes;
        in_memory_ = false;
        return 1;
      case record::in_memory:
        if (!memory_in_.is_open())
          return protocol_violation("it referred to shared memory that it has not shared");
        if (h.bytes == 0 || h.bytes > slot_bytes)
          return protocol_violation(
              "it sent a record that does not fit into a slot of its shared memory");
        left_ = h.bytes;
        in_memory_ = true;
        slot_ = h.slot;
        at_ = memory_in_.at(slot_);
        return 1;
      case record::memory:
        return take_memory();
    }
    return protocol_violation("it sent an invalid record on its local socket");
  }

  std::ptrdiff_t take_memory() noexcept {
    if (std::exchange(memory_received_, true)) return protocol_violation("it shared memory twice");
    const char* const wrong = memory_in_.open(std::move(given_[0]), std::move(given_[1]));
    return wrong ? protocol_violation(wrong) : 1;
  }

  std::ptrdiff_t read_memory(std::byte* to, std::size_t most) noexcept {
    const std::size_t n = std::min(left_, most);
    std::memcpy(to, at_, n);
    at_ += n;
    left_ -= n;
    if (left_ == 0)
      if (const char* const wrong = memory_in_.pass(slot_)) return protocol_violation(wrong);
    return static_cast<std::ptrdiff_t>(n);
  }

  // ---- writing

  /// Calls `then` once the socket has space; *this must live until then. Waits on a duplicate of
  /// the descriptor, which is closed afterwards: asio keeps a descriptor registered for space once
  /// it has waited for it, and each record that the peer reads would wake a thread that sleeps in
  /// the loop.
  void wait_to_write(std::function<void()> then) {
    using boost::asio::socket_base;
    boost::system::error_code failed;
    file_descriptor copy(::fcntl(handle(), F_DUPFD_CLOEXEC, 0));
    if (copy) space_.assign(local_protocol(), copy.get(), failed);
    if (space_.is_open()) copy.release();
    auto& waits = space_.is_open() ? space_ : socket_;
    waits.async_wait(socket_base::wait_write,
                     [this, then = std::move(then)](boost::system::error_code) {
                       boost::system::error_code ignored;
                       space_.close(ignored);
                       then();
                     });
  }

  static record_head head_of(record kind, std::size_t bytes, std::uint8_t slot = 0) noexcept {
    return {static_cast<std::uint32_t>(bytes), static_cast<std::uint16_t>(sched_getcpu()), kind,
            slot};
  }

  /// Writes the rest of a record that the socket took only in part.
  std::ptrdiff_t write_owed(const iovec* pieces, int count) noexcept {
    std::array<iovec, most_pieces> some;
    std::size_t used = 0, bytes = 0;
    for (int i = 0; i < count && used < some.size() && bytes < unsent_bytes_; ++i) {
      const std::size_t n = std::min(pieces[i].iov_len, unsent_bytes_ - bytes);
      some[used++] = {pieces[i].iov_base, n};
      bytes += n;
    }
    const auto sent = write_to(socket_, some.data(), static_cast<std::ptrdiff_t>(used));
    if (sent > 0) unsent_bytes_ -= static_cast<std::size_t>(sent);
    return sent;
  }

  std::ptrdiff_t write_record(const iovec* pieces, int count) noexcept {
    std::array<iovec, most_pieces + 2> all;
    std::size_t used = 1, bytes = 0;
    int i = 0;
    bool large = false;
    for (; i < count && i < most_pieces && bytes < most_in_socket; ++i) {
      if (pieces[i].iov_len >= large_piece && (large = has_memory())) break;
      const std::size_t n = std::min(pieces[i].iov_len, most_in_socket - bytes);
      all[used++] = {pieces[i].iov_base, n};
      bytes += n;
    }
    if (unsound_.load(std::memory_order_relaxed)) return -EPROTO;
    record_head here = head_of(record::in_socket, bytes), there{};
    all[0] = {&here, sizeof here};
    iovec* const first = bytes > 0 ? all.data() : all.data() + 1;
    std::size_t in_slot = 0;
    if (large && bytes + 2 * sizeof here <= atomic_write_limit()) {
      if (const auto n = take_slot(); n < 0 && (n != -EAGAIN || bytes == 0)) {
        waits_for_slot_ = n == -EAGAIN;
        return n;
      }
      if (memory_out_.has_free()) {
        in_slot = memory_out_.fill(pieces[i]);
        there = head_of(record::in_memory, in_slot, memory_out_.next());
        all[used++] = {&there, sizeof there};
      }
    }
    const auto sent = write_to(socket_, first, all.data() + used - first);
    if (sent < 0) return sent;
    const std::size_t heads = (bytes > 0 ? sizeof here : 0) + (in_slot > 0 ? sizeof there : 0);
    const auto n = static_cast<std::size_t>(sent);
    if (n < (in_slot > 0 ? heads + bytes : heads))
      return -EIO;  // cannot happen: see atomic_write_limit
    if (in_slot > 0) {
      memory_out_.pass();
      return static_cast<std::ptrdiff_t>(bytes + in_slot);
    }
    unsent_bytes_ = heads + bytes - n;
    return n > heads ? static_cast<std::ptrdiff_t>(n - heads) : -EAGAIN;
  }

  /// Whether the peer has mapped our memory. Creates the memory and sends it, if that is not done
  /// yet.
  bool has_memory() noexcept {
    if (memory_out_.is_granted()) return true;
    if (memory_out_.is_refused() || (!memory_out_.is_open() && !offer_memory())) return false;
    const auto n = take_slot();
    if (n == -EPIPE || n == -ECONNRESET) memory_out_.close();
    return n > 0;
  }

  bool offer_memory() noexcept {
    auto made = memory_out_.make();
    if (!made) return false;
    record_head h = head_of(record::memory, 0);
    iovec piece{&h, sizeof h};
    const std::array<int, 2> given{made->file.get(), made->of_peer.get()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof given)] = {};
    msghdr m{};
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof given);
    std::memcpy(CMSG_DATA(c), given.data(), sizeof given);
    const auto sent = result_of_call(::sendmsg(handle(), &m, MSG_DONTWAIT | MSG_NOSIGNAL));
    if (sent == -EAGAIN) return memory_out_.drop_offer(), false;  // try again later
    if (sent < 0) return memory_out_.refuse(static_cast<int>(-sent));
    memory_out_.open(std::move(*made));
    return true;
  }

  std::ptrdiff_t take_slot() noexcept {
    const auto n = memory_out_.take();
    return n == -EPROTO
               ? protocol_violation("it returned slots of shared memory that it was not given")
               : n;
  }

  int handle() const noexcept {
    return const_cast<local_protocol::socket&>(socket_).native_handle();
  }

  local_protocol::socket socket_;
  event_loop& loop_;
  std::atomic<const char*> unsound_{nullptr};

  // Used by the reading thread.
  read_buffer buffer_;
  bool drained_ = false;  ///< the last read returned less than it asked for
  slot_reader memory_in_;
  std::array<file_descriptor, 2> given_;  ///< received with the bytes in the buffer
  bool memory_received_ = false;
  std::size_t left_ = 0;  ///< of the current record
  bool in_memory_ = false;
  std::uint8_t slot_ = 0;  ///< the current one, and where the rest of the record is in it
  const std::byte* at_ = nullptr;
  int sender_ = -1;  ///< the processor that sent the last record
  const std::shared_ptr<reading_wait> reading_ = std::make_shared<reading_wait>();
  std::atomic<bool> unread_{false};  ///< there is something to read in the buffer or memory

  // Used by the writing thread.
  local_protocol::socket space_;  ///< during a wait for space
  slot_writer memory_out_;
  bool waits_for_slot_ = false;
  std::size_t unsent_bytes_ = 0;  ///< bytes of the current record still to be written
};

/// An abstract name, without a file: the first character is 0 (unix(7)).
local_protocol::endpoint endpoint_of(const std::string& name) {
  return local_protocol::endpoint(std::string(1, '\0') + name);
}

}  // namespace

std::uint64_t local_reach() {
  const char* const given = std::getenv("DEFT_LOCAL_SOCKETS");
  const std::string_view wanted = given ? given : "1";
  if (wanted != "0" && wanted != "1")
    fail(errc::invalid_argument, "DEFT_LOCAL_SOCKETS is \"", wanted, "\"; expected 0 or 1");
  if (wanted == "0") return 0;
  static const std::uint64_t reach = [] {
    char boot[64];
    std::size_t n = 0;
    if (std::FILE* f = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
      n = std::fread(boot, 1, sizeof boot, f);
      std::fclose(f);
    }
    struct stat network {};
    if (n == 0 || ::stat("/proc/self/ns/net", &network) != 0) return std::uint64_t{0};
    return mix(hash_text({boot, n}), network.st_ino) | 1;
  }();
  return reach;
}

std::unique_ptr<stream> local_stream(local_protocol::socket s, event_loop& loop) {
  return filtered(std::make_unique<local_stream_t>(std::move(s), loop));
}

std::unique_ptr<stream> connect_local(const std::string& name, event_loop& loop,
                                      boost::system::error_code& failed) {
  local_protocol::socket s(loop.context());
  if (s.open(local_protocol(), failed) || s.non_blocking(true, failed)) return nullptr;
  fcntl(s.native_handle(), F_SETFD, FD_CLOEXEC);
  const auto to = endpoint_of(name);
  // Not by Asio, which would wait if the listener's queue is full.
  if (::connect(s.native_handle(), to.data(), static_cast<socklen_t>(to.size())) != 0) {
    failed.assign(errno, boost::system::system_category());
    return nullptr;
  }
  return local_stream(std::move(s), loop);
}

local_protocol::acceptor listen_local(const std::string& name, boost::asio::io_context& context,
                                      boost::system::error_code& failed) {
  local_protocol::acceptor a(context);
  (void)(a.open(local_protocol(), failed) ||
         (fcntl(a.native_handle(), F_SETFD, FD_CLOEXEC), false) ||
         a.bind(endpoint_of(name), failed) ||
         a.listen(boost::asio::socket_base::max_listen_connections, failed) ||
         a.non_blocking(true, failed));
  return a;
}

}  // namespace deft::detail
