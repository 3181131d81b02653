// SPDX-License-Identifier: Apache-2.0
// deft/transport/listener.ipp: accepting, shaking hands, and handing messages to handlers.
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
#include <deft/transport/listener.hpp>
#include <deft/transport/local.hpp>
#include <deft/transport/serving_threads.hpp>
#include <deft/transport/tcp.hpp>
#include <deft/transport/tls.hpp>
#include <list>
#include <mutex>
#include <new>
#include <optional>

namespace deft {

/// Kept alive by its connections too, so that a handler may stop or even destroy the listener.
class listener::impl : public std::enable_shared_from_this<impl> {
 public:
  using tcp = boost::asio::ip::tcp;
  using local_protocol = boost::asio::local::stream_protocol;
  using error_code = boost::system::error_code;

  impl(listen_options&& options, connection_handler& handler)
      : options_(std::move(options)), handler_(handler) {
    const int fd = options_.fd;
    try {
      if (options_.self.incarnation == 0) options_.self.incarnation = random_incarnation();
      tls_ = detail::make_tls_context(options_.self.credentials, options_.self.name);
      open();
    } catch (...) {
      if (fd >= 0 && !callers_.acceptor.is_open()) ::close(fd);
      throw;
    }
    address_ = detail::text_of(callers_.acceptor.local_endpoint());
    callers_.acceptor.non_blocking(true);
    if (options_.local_sockets && !tls_ && detail::local_reach() != 0) open_local();
    most_connections_ =
        std::min(static_cast<std::size_t>(options_.max_connections), descriptors_for_callers());
  }

  void begin() {
    wait_for_callers(callers_);
    if (!local_name_.empty()) wait_for_callers(local_callers_);
    loop_.wake_keeper();
  }

  void stop() {
    std::unique_lock lock(guard_);
    if (!stopping_.exchange(true)) {
      // A handler of the loop may be at it.
      lock.unlock();
      {
        std::lock_guard accepting(accept_guard_);
        callers_.close();
        local_callers_.close();
      }
      lock.lock();
      for (auto& s : seats_) s->close();
      loop_.wake_keeper();
    }
    const detail::serving_threads::blocking_region while_waiting;
    changed_.wait(lock, [&] {
      return std::all_of(seats_.begin(), seats_.end(),
                         [](const auto& s) { return s.get() == seat::here(); }) &&
             helping_ == 0;
    });
    // What remains is the connection of a handler that called.
    seats_.clear();
  }

  const std::string& address() const { return address_; }
  std::uint64_t incarnation() const { return options_.self.incarnation; }
  std::size_t connections() const {
    std::lock_guard lock(guard_);
    return open_;
  }

 private:
  /// A connection, and how far it has come.
  class seat final : public detail::served, public std::enable_shared_from_this<seat> {
   public:
    seat(std::shared_ptr<impl> owner, std::shared_ptr<detail::connection_state> state, bool local)
        : owner_(std::move(owner)),
          state_(std::move(state)),
          local_(local),
          host_(state_->peer.address.substr(0, state_->peer.address.rfind(':'))),
          wait_(serve_spin),
          timer_(owner_->loop_.context()) {}

    /// Whose handler the calling thread is within.
    static const seat*& here() {
      thread_local const seat* s = nullptr;
      return s;
    }

    const std::string& host() const { return host_; }
    bool shakes_hands() const { return phase_ < phase::welcome && !leaving_; }
    const peer_info& peer() const { return state_->peer; }
    void mark_open() { phase_ = phase::open; }
    // With the owner's lock.
    void take_offer(const detail::local_offer& offer) {
      offer_ = offer;
      offered_ = stands_ = true;
    }
    bool has_offered(const detail::local_offer::token& token) const {
      return stands_ && !leaving_ && detail::same_token(offer_.caller, token);
    }
    /// False if it has been used.
    bool withdraw_offer() { return std::exchange(stands_, false); }
    void close() {
      leaving_ = true;
      state_->close();
    }

    void begin() {
      begin_timer(owner_->options_.silence);
      state_->on_event([weak = weak_from_this()] {
        if (auto s = weak.lock()) detail::serving_threads::instance().serve(std::move(s));
      });
      state_->arm();
    }

    bool serve() override {
      struct within {
        const seat* before = here();
        explicit within(const seat* s) { here() = s; }
        ~within() { here() = before; }
      } handler{this};
      try {
        return go_on();
      } catch (const std::exception& e) {
        logging::warning(owner_->address_, ": the connection of ", peer(), " failed: ", e.what());
        state_->close();
        end(nullptr);
        return true;
      }
    }
    bool look_again(std::chrono::steady_clock::time_point now) override {
      return phase_ == phase::open && !state_->is_silent() && wait_.look_again(now);
    }
    void rest() override {
      rested_ = true;
      if (phase_ != phase::ended) state_->arm();
    }
    bool wait_until_heard(std::chrono::microseconds unseen) override {
      if (phase_ != phase::open || !state_->is_silent() || !owner_->begin_helping()) return false;
      const bool helped = owner_->handler_.wait_until_heard(
          [c = state_.get()] { return !c->is_silent() || c->lost(); }, unseen);
      owner_->end_helping();
      return helped;
    }
    void resume() override {
      rested_ = false;
      wait_.restart();
    }

   private:
    bool go_on() {
      switch (phase_.load()) {
        case phase::silent:
        case phase::greeting:
        case phase::welcome:
          return greet();
        case phase::open:
          return receive();
        case phase::refused:
          return linger();
        case phase::ended:
          break;
      }
      return false;
    }

    /// welcome: not yet settled, be it here or on a local socket.
    enum class phase { silent, greeting, welcome, open, refused, ended };
    static constexpr auto serve_spin = std::chrono::microseconds(20);
    static constexpr int messages_at_once = 16;

    /// One for each phase that ends by itself.
    void begin_timer(std::chrono::milliseconds after) {
      late_ = false;
      timer_.expires_after(after);
      timer_.async_wait([weak = weak_from_this(), turn = ++turn_](error_code failed) {
        const auto s = weak.lock();
        if (failed || !s || s->turn_ != turn) return;
        s->late_ = true;
        detail::serving_threads::instance().serve(s);
      });
    }

    bool greet() {
      if (went_on_) return end(nullptr), true;
      try {
        if (late_)
          throw error(errc::deadline_exceeded, phase_ == phase::silent
                                                   ? "it said nothing"
                                                   : str("no message came in time from ", peer()));
        if (phase_ == phase::silent && state_->source().has_unread()) {
          phase_ = phase::greeting;
          begin_timer(owner_->options_.handshake_timeout);
        }
        if (!handshake_) handshake_.emplace(*state_, owner_->options_.self);
        switch (state_->try_receive(message_)) {
          case connection::arrival::nothing:
            return false;
          case connection::arrival::end:
            throw error(errc::unavailable,
                        str(peer(), " ended the connection during the handshake"));
          case connection::arrival::something:
            break;
        }
        if (!is_settled()) return true;
      } catch (const error& e) {
        // Who only looks whether the port is open is no news.
        const auto level = e.code() == errc::unavailable || owner_->stopping_
                               ? logging::level::info
                               : logging::level::warning;
        owner_->refused_.log(level, owner_->address_, " refused ", state_->peer.address, ": ",
                             e.message());
        refuse(e);
        return true;
      }
      open();
      return true;
    }

    /// After a message of the handshake.
    bool is_settled() {
      if (local_) return go_on_from_before(), true;
      if (phase_ == phase::welcome) {
        detail::check_kind(message_, message_kind::settle);
        return owner_->withdraw(*this);
      }
      const bool welcome = handshake_->on_message(
          message_, [&](const peer_info& caller) { owner_->handler_.admit(caller); },
          [&] {
            terms_ = handshake_->terms();
            return owner_->offer_to(*this);
          });
      if (!welcome) return false;
      if (!offered_) return terms_ = handshake_->terms(), true;
      phase_ = phase::welcome;
      return false;
    }
    /// On a local socket: in the place of the seat that has offered it.
    void go_on_from_before() {
      detail::check_kind(message_, message_kind::settle);
      detail::local_offer::token token;
      from_bytes(message_.meta, token);
      const auto before = owner_->claim(token);
      if (!before) fail(errc::unauthenticated, "it was not offered this local socket");
      state_->peer = before->peer();
      state_->peer.local = true;
      terms_ = before->terms_;
      message welcome(message_kind::welcome);
      welcome.meta = to_bytes(before->offer_.server);
      state_->send(welcome);
      before->went_on_ = true;
      before->close();
      detail::serving_threads::instance().serve(before);
    }

    void open() {
      ++turn_;  // no timer any more
      state_->set_limits(owner_->options_.limits);
      state_->agree({owner_->options_.self.heartbeat_timeout, owner_->options_.self.window},
                    terms_);
      handshake_.reset();
      message_ = {};
      if (!owner_->count_open(*this)) return end(nullptr);
      connection_ = std::make_shared<connection>(state_);
      try {
        owner_->handler_.on_open(connection_);
      } catch (const error& e) {
        owner_->count_closed();
        return refuse(e);
      }
      connection_told_ = true;
      logging::info(owner_->address_, " accepted ", peer(), local_ ? " by a local socket" : "");
    }

    bool receive() {
      if (std::exchange(rested_, false)) wait_.woke();
      for (int i = 0; i < messages_at_once; ++i) {
        try {
          switch (state_->try_receive(message_)) {
            case connection::arrival::nothing:
              return i > 0;
            case connection::arrival::end:
              return end(nullptr), true;
            case connection::arrival::something:
              break;
          }
        } catch (const error& e) {
          end(std::make_shared<error>(e));
          return true;
        }
        if (i == 0) wait_.came(state_->source());
        if (message_.spinning)
          wait_.set_crowded_until(detail::arrival_wait::crowded_until(
              {message_.spinning, std::chrono::steady_clock::now() +
                                      std::chrono::microseconds(message_.spinning_for)}));
        dispatch();
        detail::trim(message_);
      }
      return true;
    }

    void dispatch() {
      const detail::spinning_for_this sender(message_.spinning,
                                             std::chrono::microseconds(message_.spinning_for));
      const auto id = message_.id;
      try {
        owner_->handler_.on_message(connection_, std::move(message_));
      } catch (const error& e) {
        answer_error(id, e);
      } catch (const std::bad_alloc&) {
        answer_error(id, error(errc::resource_exhausted, "out of memory"));
      } catch (const std::exception& e) {
        answer_error(id, error(errc::internal, e.what()));
      }
    }
    void answer_error(std::uint64_t id, const error& e) {
      if (id == 0) return logging::warning("a message from ", peer(), " failed: ", e.what());
      message answer;
      encode_error(answer, id, e);
      try {
        connection_->send(answer);
      } catch (const error&) {
        // Lost: receive will say so.
      }
    }

    /// It has some time to hear why.
    void refuse(const error& why) {
      handshake_.reset();
      phase_ = phase::refused;
      leaving_ = true;
      state_->refuse(why);
      begin_timer(std::chrono::milliseconds(500));
    }
    bool linger() {
      try {
        if (!late_ && state_->try_receive(message_) != connection::arrival::end) return false;
      } catch (const error&) {
        // It is gone.
      }
      state_->close();
      end(nullptr);
      return true;
    }

    void end(const std::shared_ptr<const error>& why) {
      const bool was_open = phase_ == phase::open;
      ++turn_;
      if (why && !state_->closed_here() && why->code() != errc::unavailable) {
        // A frame that is not sound: it is told, and has some time to hear it.
        logging::info(owner_->address_, ": ", why->what());
        phase_ = phase::refused;
        leaving_ = true;
        begin_timer(std::chrono::milliseconds(500));
      } else {
        if (why) logging::info(owner_->address_, ": ", why->what());
        phase_ = phase::ended;
        state_->close();
        state_->on_event(nullptr);
      }
      if (was_open) {
        owner_->count_closed();
        // Its handler may have stopped the listener, and be gone.
        if (connection_told_ && owner_->has(*this))
          owner_->handler_.on_close(connection_, why.get());
        connection_.reset();
      }
      if (phase_ == phase::ended) owner_->remove(*this);
    }

    const std::shared_ptr<impl> owner_;
    const std::shared_ptr<detail::connection_state> state_;
    const bool local_;
    const std::string host_;  ///< of the caller; of peer() others must not read
    std::shared_ptr<connection> connection_;
    bool connection_told_ = false, rested_ = false;
    std::optional<detail::server_handshake> handshake_;
    detail::peer_terms terms_;
    detail::local_offer offer_;
    bool offered_ = false, stands_ = false;  ///< an offer; nobody has used it
    message message_;
    detail::arrival_wait wait_;
    boost::asio::steady_timer timer_;
    std::atomic<unsigned> turn_{0};
    std::atomic<bool> late_{false}, leaving_{false};
    std::atomic<bool> went_on_{false};  ///< by a local socket
    std::atomic<phase> phase_{phase::silent};
  };

  void open() {
    auto& o = options_;
    if (o.fd >= 0) {
      int listening = 0;
      socklen_t size = sizeof listening;
      if (getsockopt(o.fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 || !listening)
        fail(errc::invalid_argument, "descriptor ", o.fd, " is no listening socket");
      fcntl(o.fd, F_SETFD, FD_CLOEXEC);
      callers_.acceptor.assign(detail::protocol_of(o.fd), o.fd);
      const auto at = callers_.acceptor.local_endpoint();
      check_reach(at.address().is_loopback(), detail::text_of(at));
    } else {
      const auto at = detail::resolve(o.address).front();
      check_reach(at.address().is_loopback(), o.address);
      callers_.acceptor = detail::listen_tcp(at, o.address, loop_.context());
    }
  }
  /// Where callers of this machine go on; there may be none.
  void open_local() {
    error_code failed;
    const std::string name = str("deft/", random_incarnation(), "/", random_incarnation());
    auto a = detail::listen_local(name, loop_.context(), failed);
    if (failed) return logging::info(address_, " has no local socket: ", failed.message());
    local_callers_.acceptor = std::move(a);
    local_name_ = name;
  }
  /// Some are left to the rest of the process, and to shared memory.
  std::size_t descriptors_for_callers() const {
    rlimit most{};
    getrlimit(RLIMIT_NOFILE, &most);
    const std::size_t all = most.rlim_cur, reserve = std::min<std::size_t>(64, all / 2);
    return all - reserve - (local_name_.empty() ? 0 : detail::descriptors_for_memory());
  }
  void check_reach(bool loopback, const std::string& address) const {
    const credentials& c = options_.self.credentials;
    if (!loopback && c.secret.empty() && !tls_ && !c.insecure)
      fail(errc::permission_denied, address,
           " can be reached from other machines: that needs a secret (DEFT_SECRET or "
           "--secret_file), TLS (--tls_cert, --tls_key and --tls_ca), or --insecure");
  }

  /// Where they come in.
  template <class Protocol>
  struct entrance {
    explicit entrance(boost::asio::io_context& context) : acceptor(context), pause(context) {}
    void close() {
      error_code ignored;
      acceptor.close(ignored);
      pause.cancel();
    }
    typename Protocol::acceptor acceptor;
    boost::asio::steady_timer pause;
  };

  template <class Protocol>
  void wait_for_callers(entrance<Protocol>& e) {
    std::lock_guard accepting(accept_guard_);
    if (stopping_) return;
    e.acceptor.async_wait(tcp::acceptor::wait_read,
                          [self = shared_from_this(), &e](error_code) { self->accept_some(e); });
  }

  template <class Protocol>
  void accept_some(entrance<Protocol>& e) {
    for (;;) {
      error_code failed;
      typename Protocol::socket s(loop_.context());
      {
        std::lock_guard accepting(accept_guard_);
        if (stopping_) return;
        e.acceptor.accept(s, failed);
      }
      namespace reason = boost::asio::error;
      if (!failed) {
        fcntl(s.native_handle(), F_SETFD, FD_CLOEXEC);
        try {
          admit(std::move(s));
        } catch (const std::exception& e) {
          not_accepted_.log(logging::level::warning, "cannot accept on ", address_, ": ", e.what());
        }
      } else if (failed == reason::would_block || failed == reason::try_again) {
        return wait_for_callers(e);
      } else if (failed != reason::connection_aborted && failed.value() != EPROTO &&
                 failed.value() != EPERM) {  // those are of one caller, who is gone
        not_accepted_.log(logging::level::warning, "cannot accept on ", address_, ": ",
                          failed.message());
        return accept_later(e);
      }
    }
  }
  template <class Protocol>
  void accept_later(entrance<Protocol>& e) {
    std::lock_guard accepting(accept_guard_);
    if (stopping_) return;
    e.pause.expires_after(std::chrono::milliseconds(100));
    e.pause.async_wait([self = shared_from_this(), &e](error_code) { self->wait_for_callers(e); });
  }

  void admit(tcp::socket&& socket) {
    error_code failed;
    const auto from = socket.remote_endpoint(failed);
    if (failed) return;  // it is gone again
    auto stream = detail::tcp_stream(std::move(socket), loop_);
    if (tls_) stream = detail::tls_stream(std::move(stream), tls_, detail::tls_end::server);
    admit(std::move(stream), detail::text_of(from), false);
  }
  void admit(local_protocol::socket&& socket) {
    admit(detail::local_stream(std::move(socket), loop_), "a local socket", true);
  }
  void admit(std::unique_ptr<detail::stream> stream, const std::string& address, bool local) {
    auto state = std::make_shared<detail::connection_state>(std::move(stream),
                                                            wire_limits::before_authentication());
    state->peer.address = address;
    auto s = std::make_shared<seat>(shared_from_this(), std::move(state), local);
    {
      std::lock_guard lock(guard_);
      if (stopping_) return;
      if (seats_.size() >= most_connections_) {
        turned_away_.log(logging::level::warning, address_, " turned ", address,
                         " away: too many connections");
        return;
      }
      make_room(s->host());
      seats_.push_back(s);
    }
    s->begin();
  }

  /// For a caller from `host`: whoever has been shaking hands longest goes.
  void make_room(const std::string& host) {
    const auto most = static_cast<std::size_t>(options_.max_handshakes);
    std::size_t all = 0, of_host = 0;
    seat *oldest = nullptr, *oldest_of_host = nullptr;
    for (auto& s : seats_) {
      if (!s->shakes_hands()) continue;
      if (++all == 1) oldest = s.get();
      if (s->host() == host && ++of_host == 1) oldest_of_host = s.get();
    }
    seat* const goes = of_host >= std::max<std::size_t>(1, most / 2) ? oldest_of_host
                       : all >= most                                 ? oldest
                                                                     : nullptr;
    if (!goes) return;
    turned_away_.log(logging::level::warning, address_, " turned ", goes->peer().address,
                     " away: too many callers have not said who they are");
    goes->close();
  }

  /// For one who has just become welcome.
  detail::local_offer offer_to(seat& s) {
    detail::local_offer offer;
    if (local_name_.empty()) return offer;
    detail::random_bytes(offer.caller.data(), offer.caller.size());
    detail::random_bytes(offer.server.data(), offer.server.size());
    offer.name = local_name_;
    std::lock_guard lock(guard_);
    s.take_offer(offer);
    return offer;
  }
  /// Whoever was offered this and has not used it; once.
  std::shared_ptr<seat> claim(const detail::local_offer::token& token) {
    std::lock_guard lock(guard_);
    for (const auto& s : seats_)
      if (s->has_offered(token)) return s->withdraw_offer(), s;
    return nullptr;
  }
  bool withdraw(seat& s) {
    std::lock_guard lock(guard_);
    return s.withdraw_offer();
  }

  /// A thread is in the handler without a message.
  bool begin_helping() {
    std::lock_guard lock(guard_);
    if (stopping_) return false;
    ++helping_;
    return true;
  }
  void end_helping() {
    std::lock_guard lock(guard_);
    if (--helping_ == 0 && stopping_) changed_.notify_all();
  }
  /// False if it is too late.
  bool count_open(seat& s) {
    std::lock_guard lock(guard_);
    if (stopping_) return false;
    s.mark_open();
    ++open_;
    return true;
  }
  void count_closed() {
    std::lock_guard lock(guard_);
    --open_;
  }
  bool has(const seat& s) const {
    std::lock_guard lock(guard_);
    return std::any_of(seats_.begin(), seats_.end(), [&](const auto& i) { return i.get() == &s; });
  }
  void remove(const seat& s) {
    std::lock_guard lock(guard_);
    seats_.remove_if([&](const auto& i) { return i.get() == &s; });
    changed_.notify_all();
  }

  detail::event_loop& loop_ = detail::event_loop::of_servers();
  listen_options options_;
  std::shared_ptr<const detail::tls_context> tls_;  ///< null: none
  connection_handler& handler_;
  std::mutex accept_guard_;  ///< of what accepts
  entrance<tcp> callers_{loop_.context()};
  entrance<local_protocol> local_callers_{loop_.context()};
  std::string address_, local_name_;
  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::list<std::shared_ptr<seat>> seats_;
  std::size_t open_ = 0;
  int helping_ = 0;
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
