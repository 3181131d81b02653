// SPDX-License-Identifier: Apache-2.0
// deft/transport/listener.ipp: accepting, on TCP and on a local socket.
#pragma once
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deft/core/limited_log.hpp>
#include <deft/transport/connection_table.hpp>
#include <deft/transport/listener.hpp>
#include <deft/transport/local.hpp>
#include <deft/transport/tcp.hpp>
#include <deft/transport/tls.hpp>
#include <mutex>

namespace deft::ext {

/// Its pending operations in the loop keep it alive until it has stopped.
class listener::impl : public std::enable_shared_from_this<impl> {
 public:
  using tcp = boost::asio::ip::tcp;
  using local_protocol = boost::asio::local::stream_protocol;
  using error_code = boost::system::error_code;

  impl(listen_options&& options, connection_handler& handler)
      : table_(std::make_shared<detail::connection_table>(std::move(options), handler)) {
    listen_options& o = table_->options;
    try {
      if (o.self.incarnation == 0) o.self.incarnation = random_incarnation();
      tls_ = detail::make_tls_context(o.self.credentials, o.self.name);
      open();
    } catch (...) {
      if (o.fd >= 0 && !by_tcp_.acceptor.is_open()) ::close(o.fd);
      throw;
    }
    table_->address = detail::text_of(by_tcp_.acceptor.local_endpoint());
    by_tcp_.acceptor.non_blocking(true);
    if (o.local_sockets && !tls_ && detail::local_reach() != 0) open_local();
    table_->most = descriptors_for_callers();
  }

  void begin() {
    wait_for_callers(by_tcp_);
    if (!table_->local_name.empty()) wait_for_callers(by_local_socket_);
    table_->loop.wake_keeper();
  }

  void stop() {
    if (table_->stop()) {
      {
        // A handler of the loop may be accepting.
        std::lock_guard accepting(accept_guard_);
        by_tcp_.close();
        by_local_socket_.close();
      }
      table_->close_all();
    }
    table_->wait_for_all();
  }

  const detail::connection_table& table() const { return *table_; }

 private:
  void open() {
    const listen_options& o = table_->options;
    if (o.fd >= 0) {
      int listening = 0;
      socklen_t size = sizeof listening;
      if (getsockopt(o.fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 || !listening)
        fail(errc::invalid_argument, "descriptor ", o.fd, " is not a listening socket");
      fcntl(o.fd, F_SETFD, FD_CLOEXEC);
      by_tcp_.acceptor.assign(detail::protocol_of(o.fd), o.fd);
      const auto at = by_tcp_.acceptor.local_endpoint();
      check_reach(at.address().is_loopback(), detail::text_of(at));
    } else {
      const auto at = detail::resolve(o.address).front();
      check_reach(at.address().is_loopback(), o.address);
      by_tcp_.acceptor = detail::bind_tcp(at, o.address, table_->loop.context(), true);
    }
  }
  /// Opens the local socket for callers on this machine. A failure is only logged.
  void open_local() {
    error_code failed;
    const std::string name = str("deft/", random_incarnation(), "/", random_incarnation());
    auto a = detail::listen_local(name, table_->loop.context(), failed);
    if (failed) return logging::info(table_->address, " has no local socket: ", failed.message());
    by_local_socket_.acceptor = std::move(a);
    table_->local_name = name;
  }
  /// Reserves some for the rest of the process, and for shared memory.
  std::size_t descriptors_for_callers() const {
    rlimit most{};
    getrlimit(RLIMIT_NOFILE, &most);
    const std::size_t all = most.rlim_cur, reserve = std::min<std::size_t>(64, all / 2);
    return all - reserve - (table_->local_name.empty() ? 0 : detail::descriptors_for_memory());
  }
  void check_reach(bool loopback, const std::string& address) const {
    const credentials& c = table_->options.self.credentials;
    if (!loopback && c.secret.empty() && !tls_ && !c.insecure)
      fail(errc::permission_denied, address,
           " can be reached from other machines: that needs a secret (DEFT_SECRET or "
           "--secret_file), TLS (--tls_cert, --tls_key and --tls_ca), or --insecure");
  }

  template <class Protocol>
  struct listening_socket {
    explicit listening_socket(boost::asio::io_context& context)
        : acceptor(context), pause(context) {}
    void close() {
      error_code ignored;
      acceptor.close(ignored);
      pause.cancel();
    }
    typename Protocol::acceptor acceptor;
    boost::asio::steady_timer pause;
  };

  template <class Protocol>
  void wait_for_callers(listening_socket<Protocol>& at) {
    std::lock_guard accepting(accept_guard_);
    if (table_->stopping()) return;
    at.acceptor.async_wait(tcp::acceptor::wait_read,
                           [self = shared_from_this(), &at](error_code) { self->accept_some(at); });
  }

  template <class Protocol>
  void accept_some(listening_socket<Protocol>& at) {
    for (;;) {
      error_code failed;
      typename Protocol::socket s(table_->loop.context());
      {
        std::lock_guard accepting(accept_guard_);
        if (table_->stopping()) return;
        at.acceptor.accept(s, failed);
      }
      namespace reason = boost::asio::error;
      if (!failed) {
        fcntl(s.native_handle(), F_SETFD, FD_CLOEXEC);
        try {
          admit(std::move(s));
        } catch (const std::exception& e) {
          not_accepted_.log(logging::level::warning, "cannot accept on ", table_->address, ": ",
                            e.what());
        }
      } else if (failed == reason::would_block || failed == reason::try_again) {
        return wait_for_callers(at);
      } else if (failed != reason::connection_aborted && failed.value() != EPROTO &&
                 failed.value() != EPERM) {  // these concern one caller, which is gone
        not_accepted_.log(logging::level::warning, "cannot accept on ", table_->address, ": ",
                          failed.message());
        return accept_later(at);
      }
    }
  }
  template <class Protocol>
  void accept_later(listening_socket<Protocol>& at) {
    std::lock_guard accepting(accept_guard_);
    if (table_->stopping()) return;
    at.pause.expires_after(std::chrono::milliseconds(100));
    at.pause.async_wait(
        [self = shared_from_this(), &at](error_code) { self->wait_for_callers(at); });
  }

  void admit(tcp::socket&& socket) {
    error_code failed;
    const auto from = socket.remote_endpoint(failed);
    if (failed) return;  // the caller is gone
    auto stream = detail::tcp_stream(std::move(socket), table_->loop);
    if (tls_) stream = detail::tls_stream(std::move(stream), tls_, detail::tls_end::server);
    table_->add(std::move(stream), detail::text_of(from), false);
  }
  void admit(local_protocol::socket&& socket) {
    table_->add(detail::local_stream(std::move(socket), table_->loop), "a local socket", true);
  }

  const std::shared_ptr<detail::connection_table> table_;
  std::shared_ptr<const detail::tls_context> tls_;  ///< null without TLS
  std::mutex accept_guard_;                         ///< of the acceptors
  listening_socket<tcp> by_tcp_{table_->loop.context()};
  listening_socket<local_protocol> by_local_socket_{table_->loop.context()};
  logging::limited not_accepted_;
};

listener::listener(listen_options options, connection_handler& handler)
    : impl_(std::make_shared<impl>(std::move(options), handler)) {
  impl_->begin();
}
listener::~listener() { impl_->stop(); }
const std::string& listener::address() const { return impl_->table().address; }
std::uint16_t listener::port() const {
  return static_cast<std::uint16_t>(std::stoi(detail::split_address(address()).second));
}
std::uint64_t listener::incarnation() const { return impl_->table().options.self.incarnation; }
std::size_t listener::connections() const { return impl_->table().count(); }
void listener::stop() { impl_->stop(); }

}  // namespace deft::ext
