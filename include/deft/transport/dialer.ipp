// SPDX-License-Identifier: Apache-2.0
// deft/transport/dialer.ipp: addresses, sockets, the handshake, and the time between attempts.
#pragma once
#include <fcntl.h>

#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/transport/dialer.hpp>
#include <deft/transport/tcp.hpp>
#include <deft/transport/tls.hpp>

namespace deft::detail {

dialer::dialer(std::string address, std::shared_ptr<const channel_options> options,
               std::shared_ptr<const tls_context> tls, deadline until,
               std::weak_ptr<const void> owner)
    : address_(std::move(address)),
      options_(std::move(options)),
      tls_(std::move(tls)),
      until_(until),
      owner_(std::move(owner)),
      late_(loop_.context()),
      pause_(loop_.context()),
      socket_(loop_.context()) {}

template <class F>
void dialer::attempt(F f) {
  if (ended_) return;
  const auto failure = failure_of([&] { f(*this); });
  if (!failure) return;
  if (ended_) throw error(*failure);  // of then_; the loop logs it
  auto worse = failure_of([&] { retry(*failure); });
  if (!worse) return;
  if (ended_) throw error(*worse);  // likewise
  end(nullptr, std::move(worse));
}

template <class F>
auto dialer::handler(F f) {
  return [self = shared_from_this(), f](auto&&... result) {
    self->attempt([&](dialer& d) { f(d, std::forward<decltype(result)>(result)...); });
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
             handler([](dialer& d, std::vector<boost::asio::ip::tcp::endpoint> found,
                        const error_ptr& failure) {
               if (failure) throw error(*failure);
               d.endpoints_ = std::move(found);
               d.connect(0);
             }));
}

void dialer::connect(std::size_t i) {
  boost::system::error_code failed;
  socket_.close(failed);
  if (socket_.open(endpoints_[i].protocol(), failed)) return on_connected(i, failed);
  fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
  socket_.async_connect(endpoints_[i],
                        handler([i](dialer& d, const boost::system::error_code& failed_later) {
                          d.on_connected(i, failed_later);
                        }));
}

void dialer::on_connected(std::size_t i, const boost::system::error_code& result) {
  boost::system::error_code failed = result, ignored;
  // On loopback, a socket can connect to itself if no process listens on an ephemeral port.
  if (!failed && socket_.local_endpoint(ignored) == socket_.remote_endpoint(ignored))
    failed = boost::asio::error::connection_refused;
  if (!failed) return greet();
  if (i + 1 < endpoints_.size()) return connect(i + 1);
  throw error(errc::unavailable, failed.message());
}

void dialer::greet() {
  auto s = tcp_stream(std::exchange(socket_, boost::asio::ip::tcp::socket(loop_.context())), loop_);
  if (tls_) s = tls_stream(std::move(s), tls_, tls_end::caller);
  auto c = std::make_shared<connection_state>(std::move(s), wire_limits::before_authentication());
  c->peer.address = address_;
  handshake_.emplace(std::move(c), options_->self, options_->local_sockets && !tls_);
  handshake_->begin();
  receive();
}

void dialer::receive() {
  if (!handshake_) return;  // an event of an earlier attempt
  for (bool accepted = false; !accepted;) {
    const auto c = handshake_->connection();
    auto arrived = connection::arrival::something;
    const auto lost = failure_of([&] {
      arrived = c->try_receive(message_);
      if (arrived == connection::arrival::end)
        throw error(errc::unavailable, str(c->peer, " ended the connection during the handshake"));
      if (arrived == connection::arrival::something) accepted = handshake_->on_message(message_);
    });
    if (lost) {
      accepted = handshake_->on_lost(*lost);
    } else if (arrived == connection::arrival::nothing) {
      c->on_event(handler([](dialer& d) { d.receive(); }));
      return c->arm();
    }
  }
  const auto c = handshake_->connection();
  c->on_event(nullptr);
  c->set_limits(options_->limits);
  handshake_.reset();
  end(c, nullptr);
}

void dialer::drop_handshake() {
  if (!handshake_) return;
  handshake_->connection()->on_event(nullptr);
  handshake_->close();
  handshake_.reset();
}

void dialer::retry(const error& why) {
  drop_handshake();
  const bool late = why.code() == errc::deadline_exceeded;  // another reason says more
  if (!late && why.code() != errc::unavailable)
    return end(nullptr, std::make_shared<const error>(why));
  if (!late || why_.empty()) why_ = why.message();
  if (owner_.expired())
    return end(nullptr, make_failure(errc::cancelled, "the channel_group was destroyed"));
  const auto now = clock::now();
  if (now >= until_) return give_up();
  if (!told_ && now - began_ > std::chrono::seconds(1)) {
    logging::warning("still trying to connect to ", address_, ": ", why_);
    told_ = true;
  }
  upkeep_.reset();
  pause_.expires_at(std::min(until_, now + next_pause_));
  next_pause_ = std::min(2 * next_pause_, std::chrono::milliseconds(200));
  pause_.async_wait(handler([](dialer& d, const boost::system::error_code&) {
    d.upkeep_.emplace(d.loop_);
    d.resolve();
  }));
}

void dialer::give_up() {
  end(nullptr, failure_of([&] {
        // An earlier reason says more.
        if (why_.empty())
          why_ = handshake_           ? "it accepted the connection, but does not answer"
                 : endpoints_.empty() ? "its name has not been resolved"
                                      : "it did not answer";
        fail(errc::unavailable, "timed out after ", duration_text(clock::now() - began_),
             " waiting for ", address_, ": ", why_);
      }));
}

void dialer::end(std::shared_ptr<connection_state> c, error_ptr failure) {
  ended_ = true;
  late_.cancel();
  pause_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
  drop_handshake();
  upkeep_.reset();
  const auto then = std::move(then_);
  then(std::move(c), std::move(failure));
}

}  // namespace deft::detail
