// SPDX-License-Identifier: Apache-2.0
// deft/transport/listener.ipp: accepting on the I/O thread, a thread for each connection.
#pragma once
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deft/core/limited_log.hpp>
#include <deft/transport/connection_state.hpp>
#include <deft/transport/io_loop.hpp>
#include <deft/transport/listener.hpp>
#include <list>
#include <mutex>
#include <new>
#include <thread>

namespace deft {

/// Kept alive by its threads too, so that a handler may stop or even destroy the listener.
class listener::impl : public std::enable_shared_from_this<impl> {
 public:
  impl(listen_options&& options, connection_handler& handler)
      : options_(std::move(options)), handler_(handler) {
    fd_ = options_.fd;
    try {
      if (options_.self.incarnation == 0) options_.self.incarnation = random_incarnation();
      open();
      address_ = detail::socket_text(fd_, false);
      most_connections_ =
          std::min(static_cast<std::size_t>(options_.max_connections), descriptors_for_callers());
    } catch (...) {
      if (fd_ >= 0) ::close(fd_);
      throw;
    }
  }
  ~impl() {
    if (fd_ >= 0) ::close(fd_);
  }

  void begin() {
    watch_ = detail::watch_socket(fd_, false,
                                  [self = shared_from_this()] { return self->accept_some(); });
  }

  void stop() {
    std::unique_lock lock(guard_);
    bool first = !stopping_.exchange(true);
    if (first) {
      lock.unlock();
      watch_->cancel();
      lock.lock();
      watch_.reset();
      ::close(std::exchange(fd_, -1));
      for (auto& s : seats_) s.state->close();
    }
    auto self = std::this_thread::get_id();
    changed_.wait(lock, [&] {
      return std::all_of(seats_.begin(), seats_.end(), [&](const seat& s) {
        return s.thread.get_id() == self || !s.thread.joinable();
      });
    });
    // What remains is the thread of a handler that called.
    for (auto& s : seats_)
      if (s.thread.joinable()) s.thread.detach();
    reap(lock);
  }

  const std::string& address() const { return address_; }
  std::uint64_t incarnation() const { return options_.self.incarnation; }
  std::size_t connections() const {
    std::lock_guard lock(guard_);
    return open_;
  }

 private:
  /// A connection and its thread.
  struct seat {
    std::shared_ptr<detail::connection_state> state;
    std::thread thread;
    std::string host;      ///< of the caller
    bool open = false;     ///< after the handshake
    bool leaving = false;  ///< closed to make room for another
  };

  void open() {
    auto& o = options_;
    if (o.fd >= 0) {
      int listening = 0;
      socklen_t size = sizeof listening;
      if (getsockopt(o.fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 || !listening)
        fail(errc::invalid_argument, "descriptor ", o.fd, " is no listening socket");
      fcntl(fd_, F_SETFD, FD_CLOEXEC);
      check_reach(detail::is_loopback(fd_), detail::socket_text(fd_, false));
    } else {
      auto at = detail::resolve(o.address).front();
      check_reach(at.loopback, o.address);
      fd_ = detail::listen_on(at, o.address);
    }
    // Who connects and is gone again must not make accept wait.
    fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  }
  /// Some are left to the rest of the process.
  static std::size_t descriptors_for_callers() {
    rlimit most{};
    getrlimit(RLIMIT_NOFILE, &most);
    const std::size_t all = most.rlim_cur, reserve = std::min<std::size_t>(64, all / 2);
    return all - reserve;
  }
  void check_reach(bool loopback, const std::string& address) const {
    if (!loopback && options_.self.secret.empty() && !options_.insecure)
      fail(errc::permission_denied, address,
           " can be reached from other machines: that needs a secret (DEFT_SECRET or "
           "--secret_file), or --insecure");
  }

  detail::watch_again accept_some() {
    using detail::watch_again;
    for (;;) {
      int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) {
        switch (errno) {
          case EAGAIN:
            return watch_again::ready;
          case EINTR:
          case ECONNABORTED:
          case EPROTO:
          case EPERM:
            continue;
          default:
            not_accepted_.log(logging::level::warning, "cannot accept on ", address_, ": ",
                              detail::text_of_errno(errno));
            return watch_again::later;
        }
      }
      admit(fd);
    }
  }

  void admit(int fd) {
    auto address = detail::socket_text(fd, true);
    auto state = std::make_shared<detail::connection_state>(detail::tcp_stream(fd),
                                                            wire_limits::before_authentication());
    state->peer.address = address;
    std::unique_lock lock(guard_);
    reap(lock);
    if (stopping_) return;
    if (seats_.size() >= most_connections_) {
      turned_away_.log(logging::level::warning, address_, " turned ", address,
                       " away: too many connections");
      return;
    }
    auto host = address.substr(0, address.rfind(':'));
    make_room(host);
    auto at = seats_.insert(seats_.end(), seat{std::move(state), {}, std::move(host)});
    try {
      at->thread = std::thread([self = shared_from_this(), at] { self->run(at); });
    } catch (const std::system_error& e) {
      turned_away_.log(logging::level::warning, address_, " turned ", address,
                       " away: no thread: ", e.what());
      seats_.erase(at);
    }
  }

  /// For a caller from `host`: whoever has been shaking hands longest goes.
  void make_room(const std::string& host) {
    const auto most = static_cast<std::size_t>(options_.max_handshakes);
    std::size_t all = 0, of_host = 0;
    seat *oldest = nullptr, *oldest_of_host = nullptr;
    for (auto& s : seats_) {
      if (s.open || s.leaving) continue;
      if (++all == 1) oldest = &s;
      if (s.host == host && ++of_host == 1) oldest_of_host = &s;
    }
    seat* const goes = of_host >= std::max<std::size_t>(1, most / 2) ? oldest_of_host
                       : all >= most                                 ? oldest
                                                                     : nullptr;
    if (!goes) return;
    turned_away_.log(logging::level::warning, address_, " turned ", goes->state->peer.address,
                     " away: too many callers have not said who they are");
    goes->leaving = true;
    goes->state->close();
  }

  void run(std::list<seat>::iterator at) {
    std::shared_ptr<detail::connection_state> state;
    {
      std::lock_guard lock(guard_);
      state = at->state;
    }
    serve(at, state);
    state.reset();
    std::unique_lock lock(guard_);
    if (at->open) --open_;
    at->state.reset();  // and with it the socket, whenever the thread is joined
    if (at->thread.joinable())
      finished_.splice(finished_.end(), seats_, at);
    else
      seats_.erase(at);
    changed_.notify_all();
  }

  /// Joins threads that have ended.
  void reap(std::unique_lock<std::mutex>& lock) {
    if (finished_.empty()) return;
    auto ended = std::exchange(finished_, {});
    lock.unlock();
    for (auto& s : ended) s.thread.join();
    lock.lock();
  }

  void serve(std::list<seat>::iterator at, const std::shared_ptr<detail::connection_state>& state) {
    try {
      if (!detail::wait_for_socket(state->handle(), false, deadline_in(options_.silence))) {
        const error silent(errc::deadline_exceeded, "it said nothing");
        state->refuse(silent);
        throw silent;
      }
      shake_hands_as_server(*state, options_.self, deadline_in(options_.handshake_timeout),
                            [&](const peer_info& caller) { handler_.admit(caller); });
    } catch (const error& e) {
      // Who only looks whether the port is open is no news.
      auto level = e.code() == errc::unavailable || stopping_ ? logging::level::info
                                                              : logging::level::warning;
      refused_.log(level, address_, " refused ", state->peer.address, ": ", e.message());
      return;
    }
    state->set_limits(options_.limits);
    auto c = std::make_shared<connection>(state);
    {
      std::lock_guard lock(guard_);
      if (stopping_) return;
      at->open = true;
      ++open_;
    }
    try {
      handler_.on_open(c);
    } catch (const error& e) {
      state->refuse(e);
      return;
    }
    logging::info(address_, " accepted ", c->peer());
    std::shared_ptr<const error> why;
    message m;
    try {
      while (c->receive(m)) {
        dispatch(c, m);
        detail::trim(m);
      }
    } catch (const error& e) {
      why = std::make_shared<error>(e);
      logging::info(address_, ": ", e.what());
    }
    c->close();
    {
      std::lock_guard lock(guard_);
      if (!at->thread.joinable()) return;  // its handler has stopped us, and may be gone
    }
    handler_.on_close(c, why.get());
  }

  void dispatch(const std::shared_ptr<connection>& c, message& m) {
    auto id = m.id;
    try {
      handler_.on_message(c, std::move(m));
    } catch (const error& e) {
      answer_error(*c, id, e);
    } catch (const std::bad_alloc&) {
      answer_error(*c, id, error(errc::resource_exhausted, "out of memory"));
    } catch (const std::exception& e) {
      answer_error(*c, id, error(errc::internal, e.what()));
    }
  }
  void answer_error(connection& c, std::uint64_t id, const error& e) {
    if (id == 0) return logging::warning("a message from ", c.peer(), " failed: ", e.what());
    message answer;
    encode_error(answer, id, e);
    try {
      c.send(answer);
    } catch (const error&) {
      // Lost: receive will say so.
    }
  }

  listen_options options_;
  connection_handler& handler_;
  int fd_ = -1;
  std::string address_;
  std::shared_ptr<detail::io_watch> watch_;
  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::list<seat> seats_, finished_;
  std::size_t open_ = 0;
  std::size_t most_connections_ = 0;
  logging::limited refused_, turned_away_, not_accepted_;
  std::atomic<bool> stopping_{false};
};

listener::listener(listen_options options, connection_handler& handler)
    : impl_(std::make_shared<impl>(std::move(options), handler)) {
  impl_->begin();
}
listener::~listener() { impl_->stop(); }
const std::string& listener::address() const { return impl_->address(); }
std::uint16_t listener::port() const {
  return static_cast<std::uint16_t>(std::stoi(detail::split_address(address()).second));
}
std::uint64_t listener::incarnation() const { return impl_->incarnation(); }
std::size_t listener::connections() const { return impl_->connections(); }
void listener::stop() { impl_->stop(); }

}  // namespace deft
