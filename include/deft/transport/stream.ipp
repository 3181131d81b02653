// SPDX-License-Identifier: Apache-2.0
// deft/transport/stream.ipp: TCP sockets and addresses.
#pragma once
#ifndef BOOST_ASIO_DISABLE_SFINAE_VARIABLE_TEMPLATES
#define BOOST_ASIO_DISABLE_SFINAE_VARIABLE_TEMPLATES
#endif
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <deft/transport/stream.hpp>
#include <system_error>

namespace deft {
namespace detail {

class tcp_stream_t final : public stream {
 public:
  explicit tcp_stream_t(int fd) : fd_(fd), loopback_(is_loopback(fd)) {
    auto set = [&](int level, int name, int value) {
      setsockopt(fd_, level, name, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    // An idle peer whose machine is gone is found within a quarter of a minute. No
    // TCP_USER_TIMEOUT: it would also end connections to peers that are only too busy to read.
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  }
  ~tcp_stream_t() override { ::close(fd_); }

  std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
    for (;;) {
      auto n = recv(fd_, to, most, MSG_DONTWAIT);
      if (n >= 0) return n;
      if (errno != EINTR) return -errno;
    }
  }
  std::ptrdiff_t write(const iovec* pieces, int count) noexcept override {
    msghdr m{};
    m.msg_iov = const_cast<iovec*>(pieces);
    m.msg_iovlen = static_cast<std::size_t>(count);
    for (;;) {
      auto n = sendmsg(fd_, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n >= 0) return n;
      if (errno != EINTR) return -errno;
    }
  }
  void shut(bool both) noexcept override { shutdown(fd_, both ? SHUT_RDWR : SHUT_WR); }
  int handle() const noexcept override { return fd_; }
  bool beside_peer() const noexcept override {
    // On loopback a segment arrives where its sender runs.
    int sender = -1;
    socklen_t size = sizeof sender;
    return loopback_ && getsockopt(fd_, SOL_SOCKET, SO_INCOMING_CPU, &sender, &size) == 0 &&
           sender >= 0 && sender == sched_getcpu();
  }

 private:
  int fd_;
  bool loopback_;
};

std::unique_ptr<stream> tcp_stream(int fd) { return std::make_unique<tcp_stream_t>(fd); }

std::string text_of_errno(int e) { return std::generic_category().message(e); }

std::pair<std::string, std::string> split_address(const std::string& address) {
  auto colon = address.rfind(':');
  if (colon == address.npos)
    fail(errc::invalid_argument, "\"", address, "\" is no address: expected host:port");
  std::string host = address.substr(0, colon), port = address.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of("[]:/ ") != host.npos)
    fail(errc::invalid_argument, "\"", address, "\" is no address: \"", host, "\" is no host");
  bool digits = !port.empty() && port.size() <= 5 &&
                std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || std::stoi(port) > 65535)
    fail(errc::invalid_argument, "\"", address, "\" is no address: \"", port, "\" is no port");
  return {host, port};
}

std::vector<endpoint> resolve(const std::string& address) {
  using boost::asio::ip::tcp;
  auto [host, port] = split_address(address);
  // Loopback asks nobody (RFC 6761, 6.3): a bare container knows no names.
  if (host.empty() || host == "localhost") host = "127.0.0.1";
  boost::asio::io_context io;
  boost::system::error_code failed;
  auto found = tcp::resolver(io).resolve(host, port, tcp::resolver::numeric_service, failed);
  if (failed)
    fail(errc::unavailable, "cannot find host \"", host, "\" of \"", address,
         "\": ", failed.message());
  std::vector<endpoint> all;
  for (const auto& f : found) {
    auto e = f.endpoint();
    endpoint to;
    to.length = static_cast<unsigned>(e.size());
    std::memcpy(to.address, e.data(), e.size());
    to.family = e.protocol().family();
    to.loopback = e.address().is_loopback();
    all.push_back(to);
  }
  std::stable_partition(all.begin(), all.end(),
                        [](const endpoint& e) { return e.family == AF_INET; });
  return all;
}

int poll_timeout(deadline until) {
  if (until == no_deadline) return -1;
  auto now = std::chrono::steady_clock::now();
  if (until <= now) return 0;
  auto ms = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  return static_cast<int>(std::min<decltype(ms)>(ms, 1'000'000'000));
}

bool wait_for_socket(int fd, bool write, deadline until) {
  for (;;) {
    pollfd p{fd, static_cast<short>(write ? POLLOUT : POLLIN), 0};
    int n = ::poll(&p, 1, poll_timeout(until));
    if (n > 0) return true;
    if (n == 0 && std::chrono::steady_clock::now() >= until) return false;
    if (n < 0 && errno != EINTR) return true;
  }
}

bool arrival_wait::look_again(clock::time_point now) {
  if (began_ == clock::time_point{}) began_ = now;
  last_ = now;
  if (!slept_ && spin_.worth(now - began_)) {
    relax();
    return true;
  }
  slept_ = true;
  return false;
}

/// The calling thread runs on another processor from here on, for as long as the system likes.
inline void leave_processor() {
  cpu_set_t all;
  const int here = sched_getcpu();
  if (here < 0 || sched_getaffinity(0, sizeof all, &all) != 0) return;
  cpu_set_t others = all;
  CPU_CLR(here, &others);
  if (CPU_COUNT(&others) == 0) return;
  sched_setaffinity(0, sizeof others, &others);
  sched_setaffinity(0, sizeof all, &all);
}

void arrival_wait::came(const stream& s) {
  constexpr int often = 32;
  constexpr auto rest = std::chrono::milliseconds(100);
  if (began_ == clock::time_point{}) return;
  const auto waited = last_ - began_;
  const bool beside = slept_ && s.beside_peer();
  spin_.came(slept_, waited, beside);
  beside_soon_ = beside && waited < 2 * most_ ? beside_soon_ + 1 : 0;
  if (beside_soon_ >= often && last_ >= move_again_) {
    leave_processor();
    beside_soon_ = 0;
    move_again_ = last_ + rest;
  }
  restart();
}

int connect_socket(const endpoint& to, deadline until) {
  int fd = socket(to.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  int failed = 0;
  if (connect(fd, reinterpret_cast<const sockaddr*>(to.address), to.length) < 0) failed = errno;
  if (failed == EINPROGRESS || failed == EINTR) {
    socklen_t size = sizeof failed;
    if (!wait_for_socket(fd, true, until))
      failed = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0)
      failed = errno;
  }
  // On loopback a socket can be connected to itself while nobody listens on an ephemeral port.
  if (!failed && socket_text(fd, false) == socket_text(fd, true)) failed = ECONNREFUSED;
  if (failed) {
    ::close(fd);
    return -failed;
  }
  return fd;
}

int listen_on(const endpoint& at, const std::string& name) {
  int fd = socket(at.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int yes = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(at.address), at.length) < 0 ||
      listen(fd, SOMAXCONN) < 0) {
    int why = errno;
    if (fd >= 0) ::close(fd);
    fail(errc::unavailable, "cannot listen on ", name, ": ", text_of_errno(why));
  }
  return fd;
}

namespace {
boost::asio::ip::tcp::endpoint endpoint_of_socket(int fd, bool peer) {
  boost::asio::ip::tcp::endpoint e;
  auto size = static_cast<socklen_t>(e.capacity());
  if ((peer ? getpeername : getsockname)(fd, e.data(), &size) < 0 ||
      (e.data()->sa_family != AF_INET && e.data()->sa_family != AF_INET6))
    return {};
  e.resize(size);
  return e;
}
}  // namespace

bool is_loopback(int fd) { return endpoint_of_socket(fd, false).address().is_loopback(); }

std::string socket_text(int fd, bool peer) {
  auto e = endpoint_of_socket(fd, peer);
  auto host = e.address().to_string();
  return e.address().is_v6() ? str("[", host, "]:", e.port()) : str(host, ":", e.port());
}

}  // namespace detail

int listen_socket(const std::string& address) {
  auto all = detail::resolve(address);
  int fd = detail::listen_on(all.front(), address);
  fcntl(fd, F_SETFD, 0);
  return fd;
}

std::string address_of_socket(int fd) { return detail::socket_text(fd, false); }

}  // namespace deft
