// SPDX-License-Identifier: Apache-2.0
// deft/transport/dialer.ipp: addresses, sockets, the handshake, and the time between attempts.
#pragma once
#include <fcntl.h>

#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/transport/dialer.hpp>
#include <deft/transport/tcp.hpp>
#include <deft/transport/tls.hpp>

namespace deft::detail {

namespace {
/// How long an address has before the next one is tried as well: RFC 8305, 5 and 8.
constexpr std::chrono::milliseconds usual_delay{250}, least_delay{10};

/// Whether the server may still come up after this error.
bool is_passing(const error& e) {
  return e.code() == errc::unavailable || e.code() == errc::deadline_exceeded;
}
}  // namespace

dialer::dialer(std::string address, std::string task,
               std::shared_ptr<const channel_options> options,
               std::shared_ptr<const tls_context> tls, deadline until,
               std::weak_ptr<const void> owner)
    : address_(std::move(address)),
      task_(std::move(task)),
      options_(std::move(options)),
      tls_(std::move(tls)),
      until_(until),
      owner_(std::move(owner)),
      late_(loop_.context()),
      pause_(loop_.context()),
      next_address_(loop_.context()) {}

template <class F, class Failed>
void dialer::guarded(F f, Failed failed) {
  const auto failure = failure_of(f);
  if (!failure) return;
  if (ended_) throw error(*failure);  // of then_; the loop logs it
  auto worse = failure_of([&] { failed(*failure); });
  if (!worse) return;
  if (ended_) throw error(*worse);  // likewise
  end(nullptr, std::move(worse));
}

template <class F>
auto dialer::handler(F f) {
  return [self = shared_from_this(), f](auto&&... result) {
    if (self->ended_) return;
    self->guarded([&] { f(*self, std::forward<decltype(result)>(result)...); },
                  [&](const error& why) { self->retry(why); });
  };
}

template <class F>
auto dialer::handler_of(const attempt_ptr& a, F f) {
  return [self = shared_from_this(), a, f](auto&&... result) {
    if (self->ended_ || a->over) return;
    self->guarded([&] { f(*self, a, std::forward<decltype(result)>(result)...); },
                  [&](const error& why) { self->on_failure(a, why); });
  };
}

void dialer::begin(dial_callback then) {
  then_ = std::move(then);
  began_ = clock::now();
  upkeep_.emplace(loop_);
  boost::asio::post(loop_.context(), handler([](dialer& d) {
                      if (d.until_ != no_deadline) {
                        d.late_.expires_at(d.until_);
                        d.late_.async_wait([self = d.shared_from_this()](auto failed) {
                          if (!failed && !self->ended_) self->give_up();
                        });
                      }
                      d.resolve();
                    }));
}

void dialer::resolve() {
  resolve_on(loop_.context(), address_,
             handler([](dialer& d, std::vector<endpoint> found, const error_ptr& failure) {
               if (failure) throw error(*failure);
               d.endpoints_ = std::move(found);
               d.next_ = 0;
               d.connect_next();
             }));
}

/// Tries the next address, and later the one after it.
void dialer::connect_next() {
  const endpoint to = endpoints_[next_++];
  if (const auto after = endpoints_.size() - next_; after > 0) {
    // All of them have their turn before the deadline.
    const auto share = (until_ - clock::now()) / (static_cast<std::int64_t>(after) + 1);
    next_address_.expires_after(std::clamp<clock::duration>(share, least_delay, usual_delay));
    next_address_.async_wait(handler([](dialer& d, const boost::system::error_code& cancelled) {
      if (!cancelled && d.next_ < d.endpoints_.size()) d.connect_next();
    }));
  }
  connect(to);
}

void dialer::connect(const endpoint& to) {
  const auto a = std::make_shared<attempt>(to, loop_.context());
  attempts_.push_back(a);
  const auto connected =
      handler_of(a, [](dialer& d, const attempt_ptr& of, const boost::system::error_code& failed) {
        d.on_connected(of, failed);
      });
  boost::system::error_code failed;
  if (a->socket.open(to.protocol(), failed)) return connected(failed);
  fcntl(a->socket.native_handle(), F_SETFD, FD_CLOEXEC);
  a->socket.async_connect(to, connected);
}

void dialer::on_connected(const attempt_ptr& a, const boost::system::error_code& result) {
  boost::system::error_code failed = result, ignored;
  // On loopback, a socket can connect to itself if no process listens on an ephemeral port.
  if (!failed && a->socket.local_endpoint(ignored) == a->socket.remote_endpoint(ignored))
    failed = boost::asio::error::connection_refused;
  if (failed)
    throw error(errc::unavailable, endpoints_.size() == 1
                                       ? failed.message()
                                       : str(text_of(a->to), ": ", failed.message()));
  auto s = tcp_stream(std::move(a->socket), loop_);
  if (tls_) s = tls_stream(std::move(s), tls_, tls_end::caller);
  auto c = std::make_shared<connection_state>(std::move(s), wire_limits::before_authentication());
  c->peer.address = address_;
  a->handshake.emplace(std::move(c), options_->self, task_, options_->local_sockets && !tls_);
  a->handshake->begin();
  receive(a);
}

void dialer::receive(const attempt_ptr& a) {
  for (bool accepted = false; !accepted;) {
    const auto c = a->handshake->connection();
    auto arrived = connection::arrival::something;
    const auto lost = failure_of([&] {
      arrived = c->try_receive(a->received);
      if (arrived == connection::arrival::end)
        throw error(errc::unavailable, str(c->peer, " ended the connection during the handshake"));
      if (arrived == connection::arrival::something)
        accepted = a->handshake->on_message(a->received);
    });
    if (lost) {
      accepted = a->handshake->on_lost(*lost);
    } else if (arrived == connection::arrival::nothing) {
      c->on_event(handler_of(a, [](dialer& d, const attempt_ptr& of) { d.receive(of); }));
      return c->arm();
    }
  }
  const auto c = a->handshake->connection();
  c->on_event(nullptr);
  c->set_limits(options_->limits);
  a->handshake.reset();
  end(c, nullptr);
}

void dialer::drop(attempt& a) {
  a.over = true;
  boost::system::error_code ignored;
  a.socket.close(ignored);
  if (!a.handshake) return;
  a.handshake->connection()->on_event(nullptr);
  a.handshake->close();
  a.handshake.reset();
}
void dialer::drop_all() {
  next_address_.cancel();
  next_ = endpoints_.size();
  failed_.clear();
  for (const auto& a : std::exchange(attempts_, {})) drop(*a);
}

void dialer::on_failure(const attempt_ptr& a, const error& why) {
  drop(*a);
  std::erase(attempts_, a);
  if (!is_passing(why) || owner_.expired()) return retry(why);
  if (next_ < endpoints_.size()) {
    note(why);
    next_address_.cancel();
    return connect_next();
  }
  if (attempts_.empty()) return retry(why);
  // It may come up while another address does not answer.
  note(why);
  failed_.push_back(a->to);
  if (failed_.size() > 1) return;
  pause_.expires_after(next_pause_);
  next_pause_ = std::min(2 * next_pause_, std::chrono::milliseconds(200));
  pause_.async_wait(handler([](dialer& d, const boost::system::error_code& cancelled) {
    if (cancelled) return;
    for (const auto& to : std::exchange(d.failed_, {})) d.connect(to);
  }));
}

void dialer::note(const error& why) {
  // Another reason says more than that the time is over.
  if (why.code() != errc::deadline_exceeded || why_.empty()) why_ = why.message();
  if (warned_ || clock::now() - began_ <= std::chrono::seconds(1)) return;
  logging::warning("still trying to connect to ", address_, ": ", why_);
  warned_ = true;
}

void dialer::retry(const error& why) {
  drop_all();
  if (!is_passing(why)) return end(nullptr, std::make_shared<const error>(why));
  if (owner_.expired())
    return end(nullptr, make_failure(errc::cancelled, "the channel_group was destroyed"));
  note(why);
  const auto now = clock::now();
  if (now >= until_) return give_up();
  upkeep_.reset();
  pause_.expires_at(std::min(until_, now + next_pause_));
  next_pause_ = std::min(2 * next_pause_, std::chrono::milliseconds(200));
  pause_.async_wait(handler([](dialer& d, const boost::system::error_code& cancelled) {
    if (cancelled) return;
    d.upkeep_.emplace(d.loop_);
    d.resolve();
  }));
}

void dialer::give_up() {
  const bool accepted =
      std::ranges::any_of(attempts_, [](const attempt_ptr& a) { return a->handshake.has_value(); });
  end(nullptr, failure_of([&] {
        // An earlier reason says more.
        if (why_.empty())
          why_ = accepted             ? "it accepted the connection, but does not answer"
                 : endpoints_.empty() ? "its name has not been resolved"
                                      : "it did not answer";
        fail(errc::unavailable, error_reason::connect_timeout, why_);
      }));
}

void dialer::end(std::shared_ptr<connection_state> c, error_ptr failure) {
  ended_ = true;
  late_.cancel();
  pause_.cancel();
  drop_all();
  upkeep_.reset();
  const auto then = std::move(then_);
  then(std::move(c), std::move(failure));
}

}  // namespace deft::detail
