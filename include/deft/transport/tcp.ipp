// SPDX-License-Identifier: Apache-2.0
// deft/transport/tcp.ipp: streams on Asio's sockets.
#pragma once
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include <boost/asio/ip/v6_only.hpp>
#include <deft/core/error.hpp>
#include <deft/transport/socket_calls.hpp>
#include <deft/transport/tcp.hpp>
#include <mutex>

namespace deft::ext {}  // namespace deft::ext

namespace deft::detail {

namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

class tcp_stream_t final : public stream {
 public:
  tcp_stream_t(tcp::socket s, event_loop& loop) : socket_(std::move(s)), loop_(loop) {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(tcp::no_delay(true), ignored);
    loopback_ = socket_.local_endpoint(ignored).address().is_loopback();
    if (!loopback_) keep_alive();
  }

  std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
    const auto n = read_from(socket_, to, most);
    drained_ = n > 0 && static_cast<std::size_t>(n) < most;
    return n;
  }
  std::ptrdiff_t write(const iovec* pieces, int count) noexcept override {
    return write_to(socket_, pieces, count);
  }
  bool has_unread() const noexcept override {
    error_code failed;
    return socket_.available(failed) > 0;
  }
  void wait(direction d, std::function<void()> then) override {
    socket_.async_wait(d == direction::in ? tcp::socket::wait_read : tcp::socket::wait_write,
                       [then = std::move(then)](error_code) { then(); });
  }
  void shut(bool both) noexcept override {
    error_code ignored;
    socket_.shutdown(both ? tcp::socket::shutdown_both : tcp::socket::shutdown_send, ignored);
  }
  bool shares_processor() const noexcept override {
    // On loopback a segment arrives on its sender's processor.
    int sender = -1;
    socklen_t size = sizeof sender;
    return loopback_ &&
           getsockopt(const_cast<tcp::socket&>(socket_).native_handle(), SOL_SOCKET,
                      SO_INCOMING_CPU, &sender, &size) == 0 &&
           sender >= 0 && sender == sched_getcpu();
  }
  bool is_drained() const noexcept override { return drained_; }
  bool on_this_host() const noexcept override { return loopback_; }
  event_loop& loop() const noexcept override { return loop_; }

 private:
  /// Finds out within 15 s that the machine of an idle peer is gone; heartbeats do if data is in
  /// flight. No TCP_USER_TIMEOUT: it would also end connections to peers that are only too busy to
  /// read.
  void keep_alive() {
    error_code ignored;
    socket_.set_option(boost::asio::socket_base::keep_alive(true), ignored);
    auto set = [&](int name, int value) {
      setsockopt(socket_.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
    };
    set(TCP_KEEPIDLE, 5);
    set(TCP_KEEPINTVL, 2);
    set(TCP_KEEPCNT, 5);
  }

  tcp::socket socket_;
  event_loop& loop_;
  bool loopback_ = false;
  bool drained_ = false;  ///< the last read returned less than it asked for
};

std::mutex filter_guard;
stream_filter filter;

}  // namespace

void filter_streams(stream_filter f) {
  std::lock_guard lock(filter_guard);
  filter = std::move(f);
}

std::unique_ptr<stream> filtered(std::unique_ptr<stream> s) {
  std::lock_guard lock(filter_guard);
  return filter ? filter(std::move(s)) : std::move(s);
}

std::string stream::why(int failed) const { return text_of_errno(failed); }

std::unique_ptr<stream> tcp_stream(tcp::socket s, event_loop& loop) {
  return filtered(std::make_unique<tcp_stream_t>(std::move(s), loop));
}

tcp::acceptor bind_tcp(const tcp::endpoint& at, const std::string& name,
                       boost::asio::io_context& context, bool listens) {
  tcp::acceptor a(context);
  error_code failed;
  // Stops at the first failure.
  (void)(a.open(at.protocol(), failed) || (fcntl(a.native_handle(), F_SETFD, FD_CLOEXEC), false) ||
         a.set_option(tcp::acceptor::reuse_address(true), failed) ||
         // [::] stands for all interfaces, those with IPv4 addresses, too.
         (at.address().is_v6() && at.address().is_unspecified() &&
          a.set_option(boost::asio::ip::v6_only(false), failed)) ||
         a.bind(at, failed) ||
         (listens && a.listen(boost::asio::socket_base::max_listen_connections, failed)));
  if (failed)
    fail(errc::unavailable, "cannot listen on ", name, ": ", failed.message(),
         failed == boost::asio::error::address_in_use
             ? "; another process listens there: use another port, or port 0 for any that is free"
             : "");
  return a;
}

}  // namespace deft::detail

namespace deft::ext {

int listen_socket(const std::string& address) {
  boost::asio::io_context context;
  const auto all = detail::resolve(address);
  const int fd = detail::bind_tcp(all.front(), address, context, true).release();
  fcntl(fd, F_SETFD, 0);
  return fd;
}

int reserve_address(const std::string& address) {
  boost::asio::io_context context;
  const auto all = detail::resolve(address);
  return detail::bind_tcp(all.front(), address, context, false).release();
}

std::string address_of_socket(int fd) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor a(context);
  boost::system::error_code failed;
  a.assign(detail::protocol_of(fd), fd, failed);
  if (failed) fail(errc::invalid_argument, "descriptor ", fd, " is not a socket");
  const auto at = a.local_endpoint(failed);
  a.release();
  return detail::text_of(at);
}

}  // namespace deft::ext
