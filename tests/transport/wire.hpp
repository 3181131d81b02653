// SPDX-License-Identifier: Apache-2.0
// tests/transport/wire.hpp: streams from memory, bare sockets, and servers for tests.
#pragma once
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deft/core/log.hpp>
#include <deft/transport/archive.hpp>
#include <deft/transport/channel_group.hpp>
#include <deft/transport/connection_state.hpp>
#include <deft/transport/frame.hpp>
#include <deft/transport/listener.hpp>
#include <deft/transport/local.hpp>
#include <deft/transport/tcp.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <testing.hpp>
#include <thread>

namespace testing {

using namespace deft;
using namespace deft::ext;

/// A deadline that only a hang reaches.
inline deadline soon() { return deadline_in(std::chrono::seconds(60)); }
/// A deadline that has passed.
inline deadline past() { return std::chrono::steady_clock::now() - std::chrono::seconds(1); }

/// A stream that ends at once, and takes nothing.
class no_stream : public detail::stream {
 public:
  std::ptrdiff_t read(void*, std::size_t) noexcept override { return 0; }
  std::ptrdiff_t write(const iovec*, int) noexcept override { return -EPIPE; }
  bool has_unread() const noexcept override { return false; }
  void wait(direction, std::function<void()>) override {}
  void shut(bool) noexcept override {}
  bool shares_processor() const noexcept override { return false; }
  detail::event_loop& loop() const noexcept override { return detail::event_loop::of_callers(); }
};

/// Yields the given bytes, at most `step` at a time with a pause after each, then an end.
class memory_stream final : public no_stream {
 public:
  explicit memory_stream(std::vector<std::byte> bytes, std::size_t step = SIZE_MAX)
      : bytes_(std::move(bytes)), step_(step) {}
  std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
    if (step_ != SIZE_MAX && (pause_ = !pause_)) return -EAGAIN;
    std::size_t n = std::min({most, step_, bytes_.size() - at_});
    if (n) std::memcpy(to, bytes_.data() + at_, n);
    at_ += n;
    return static_cast<std::ptrdiff_t>(n);
  }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t step_, at_ = 0;
  bool pause_ = false;
};

/// The client's side of a handshake, on a connection that the test made.
inline void shake_hands(const std::shared_ptr<detail::connection_state>& c,
                        const process_identity& self) {
  detail::client_handshake h(c, self, {}, false);
  h.begin();
  for (message m;;) try {
      if (!c->receive(m, soon())) throw error(errc::unavailable, "the server ended it");
      if (h.on_message(m)) return;
    } catch (const error& e) {
      h.on_lost(e);
    }
}

/// A blocking socket without a protocol.
class bare_socket {
 public:
  explicit bare_socket(int fd) : fd_(fd) {}
  /// `from`: the caller's own address, such as "127.0.0.2:0"; empty: any.
  explicit bare_socket(const std::string& address, const std::string& from = "") {
    const auto to = detail::resolve(address).front();
    fd_ = ::socket(to.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!from.empty()) {
      const auto own = detail::resolve(from).front();
      REQUIRE(::bind(fd_, own.data(), static_cast<socklen_t>(own.size())) == 0);
    }
    REQUIRE(::connect(fd_, to.data(), static_cast<socklen_t>(to.size())) == 0);
  }
  ~bare_socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  bare_socket(bare_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) {  // deft has made it non-blocking
        pollfd p{fd_, POLLOUT, 0};
        ::poll(&p, 1, -1);
        continue;
      }
      if (n <= 0) return;  // the other end may close it
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Everything up to the end of the stream.
  std::vector<std::byte> read_all() {
    std::vector<std::byte> all;
    std::byte block[4096];
    for (;;) {
      auto n = ::recv(fd_, block, sizeof block, 0);
      if (n <= 0) return all;
      all.insert(all.end(), block, block + n);
    }
  }
  void reset() {
    linger hard{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    ::close(std::exchange(fd_, -1));
  }
  int handle() const { return fd_; }
  /// Both ends of a connection.
  static std::array<bare_socket, 2> tcp_pair() {
    const int listening = listen_socket("localhost:0");
    bare_socket out(address_of_socket(listening));
    // `out` is connected, so accept has one.
    bare_socket in(::accept(listening, nullptr, nullptr));
    ::close(listening);
    return {std::move(out), std::move(in)};
  }
  /// Both ends of a local socket.
  static std::array<bare_socket, 2> local_pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    return {bare_socket(ends[0]), bare_socket(ends[1])};
  }
  /// One of them as a stream of deft.
  std::unique_ptr<detail::stream> local_stream() {
    auto& loop = detail::event_loop::of_callers();
    using protocol = boost::asio::local::stream_protocol;
    protocol::socket s(loop.context(), protocol(), fd_);
    fd_ = -1;
    return detail::local_stream(std::move(s), loop);
  }
  /// The socket as a stream of deft; in the loop of callers unless another one is given.
  std::unique_ptr<detail::stream> stream(
      detail::event_loop& loop = detail::event_loop::of_callers()) {
    boost::asio::ip::tcp::socket s(loop.context(), detail::protocol_of(fd_), fd_);
    fd_ = -1;
    return detail::tcp_stream(std::move(s), loop);
  }

 private:
  int fd_;
};

/// A handler made of functions; by default every message is sent back as a reply.
struct test_handler : connection_handler {
  using peer = std::shared_ptr<connection>;
  std::function<void(const peer&)> opened;
  std::function<void(const peer&, message&&)> came = [](const peer& c, message&& m) {
    m.kind = message_kind::reply;
    c->send(m);
  };
  std::function<void(const peer&, const error*)> closed;

  void on_open(const peer& c) override {
    if (opened) opened(c);
  }
  void on_message(const peer& c, message&& m) override { came(c, std::move(m)); }
  void on_close(const peer& c, const error* why) override {
    if (closed) closed(c, why);
  }
};

inline listen_options options_of_test(std::string secret = "") {
  listen_options o;
  o.self.name = "/job:ps/replica:0/task:0";
  o.self.credentials.secret = std::move(secret);
  return o;
}
inline channel_options client_of_test(std::string secret = "") {
  channel_options o;
  o.self.credentials.secret = std::move(secret);
  return o;
}

/// A queue of values that one thread waits for and another provides.
template <class T>
class mailbox {
 public:
  void put(T v) {
    std::lock_guard lock(guard_);
    values_.push_back(std::move(v));
    changed_.notify_all();
  }
  /// The next value; a failed test if none comes.
  T get() {
    std::unique_lock lock(guard_);
    bool there = changed_.wait_until(lock, soon(), [&] { return !values_.empty(); });
    REQUIRE(there);
    T v = std::move(values_.front());
    values_.erase(values_.begin());
    return v;
  }

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

/// Collects log lines while it lives.
class captured_log {
 public:
  captured_log() {
    old_ = logging::threshold();
    logging::set_level(logging::level::info);
    logging::set_sink([](logging::level, const std::string& text) { lines().put(text); });
  }
  ~captured_log() {
    logging::set_sink(nullptr);
    logging::set_level(old_);
  }
  /// Waits for a line that contains `part`.
  std::string wait_for(std::string_view part) {
    for (;;) {
      auto line = lines().get();
      if (line.find(part) != line.npos) return line;
    }
  }

 private:
  static mailbox<std::string>& lines() {
    static auto& all = *new mailbox<std::string>;
    return all;
  }
  logging::level old_;
};

/// Limits the number of descriptors of this process.
class descriptor_limit {
 public:
  explicit descriptor_limit(rlim_t most) {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit now{most, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &now) == 0);
  }
  descriptor_limit(const descriptor_limit&) = delete;
  ~descriptor_limit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// Descriptors of this process.
inline std::size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
/// Those that are sockets.
inline std::size_t sockets() {
  std::size_t n = 0;
  std::error_code gone;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd"))
    n += std::filesystem::read_symlink(fd.path(), gone).string().starts_with("socket:");
  return n;
}
/// Descriptors of which this process's event loops are told when they have space.
inline int waits_for_space() {
  int n = 0;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(fd.path());
    for (std::string word; info >> word;)
      if (word == "events:" && info >> word) n += (std::stoul(word, nullptr, 16) & EPOLLOUT) != 0;
  }
  return n;
}
/// How often this process has mapped shared memory of deft's.
inline std::size_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t n = 0;
  for (std::string line; std::getline(maps, line);) n += line.find("memfd:deft") != line.npos;
  return n;
}

inline any_array pattern(dtype type, const dims& shape, unsigned seed) {
  any_array a(type, shape);
  auto* p = static_cast<std::uint8_t*>(a.mutable_raw());
  for (std::size_t i = 0; i < a.bytes(); ++i)
    p[i] = static_cast<std::uint8_t>(type == dtype::boolean ? (i + seed) % 2 : i * 31 + seed);
  return a;
}
inline bool same_bytes(const any_array& a, const any_array& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

}  // namespace testing
