// SPDX-License-Identifier: Apache-2.0
// deft/transport/accepted_connection.ipp: the handshake, passing messages to the handler, refusals.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/limited_log.hpp>
#include <deft/core/printable.hpp>
#include <deft/transport/accepted_connection.hpp>
#include <deft/transport/archive.hpp>
#include <deft/transport/connection_table.hpp>

namespace deft::detail {

accepted_connection::accepted_connection(std::shared_ptr<connection_table> table,
                                         std::shared_ptr<connection_state> s, bool local)
    : table_(std::move(table)),
      state_(std::move(s)),
      local_(local),
      host_(state_->peer.address.substr(0, state_->peer.address.rfind(':'))),
      wait_(most_spin),
      timer_(table_->loop.context()) {}

const accepted_connection*& accepted_connection::current() {
  thread_local const accepted_connection* c = nullptr;
  return c;
}

void accepted_connection::begin() {
  begin_timer(table_->options.silence);
  state_->on_event([weak = weak_from_this()] {
    if (auto self = weak.lock()) serving_threads::instance().serve(std::move(self));
  });
  state_->arm();
}

void accepted_connection::close() {
  leaving_ = true;
  state_->close();
}

void accepted_connection::take_offer(const local_offer& offer) {
  offer_ = offer;
  offered_ = offer_stands_ = true;
}
bool accepted_connection::has_offered(const local_offer::token& token) const {
  return offer_stands_ && !leaving_ && same_token(offer_.caller, token);
}

served::work accepted_connection::serve() {
  struct within {
    const accepted_connection* before = current();
    explicit within(const accepted_connection* c) { current() = c; }
    ~within() { current() = before; }
  } handler{this};
  try {
    return go_on();
  } catch (const std::exception& e) {
    state_->close();
    end(nullptr);
    logging::warning(table_->address, ": the connection of ", peer(),
                     " failed: ", printable(e.what()));
    return work::some;
  }
}
bool accepted_connection::look_again(std::chrono::steady_clock::time_point now) {
  return phase_ == phase::open && !state_->spins_suspended() && wait_.look_again(now);
}
void accepted_connection::rest() {
  rested_ = true;
  if (phase_ != phase::ended) state_->arm();
}

bool accepted_connection::wait_until_heard(std::chrono::microseconds unseen) {
  if (phase_ != phase::open || !state_->spins_suspended() || !table_->begin_helping()) return false;
  const bool helped = table_->handler.wait_until_heard(
      [c = state_.get()] { return !c->spins_suspended() || c->lost(); }, unseen);
  table_->end_helping();
  return helped;
}
void accepted_connection::resume() {
  rested_ = false;
  wait_.restart();
}

served::work accepted_connection::go_on() {
  bool some = false;
  switch (phase_.load()) {
    case phase::silent:
    case phase::greeting:
    case phase::welcome:
      some = shake_hands();
      break;
    case phase::open:
      return receive();
    case phase::refused:
      some = drop_input();
      break;
    case phase::ended:
      break;
  }
  return some ? work::some : work::none;
}

/// The time limit of the current phase.
void accepted_connection::begin_timer(std::chrono::milliseconds after) {
  late_ = false;
  timer_.expires_after(after);
  timer_.async_wait(
      [weak = weak_from_this(), turn = ++turn_](const boost::system::error_code& failed) {
        const auto self = weak.lock();
        if (failed || !self || self->turn_ != turn) return;
        self->late_ = true;
        serving_threads::instance().serve(self);
      });
}

bool accepted_connection::shake_hands() {
  if (replaced_) return end(nullptr), true;
  try {
    if (late_)
      throw error(errc::deadline_exceeded,
                  phase_ == phase::silent
                      ? str("timed out after ", duration_text(table_->options.silence),
                            " waiting for its first message")
                      : str("timed out after ", duration_text(table_->options.handshake_timeout),
                            " waiting for the handshake of ", peer()));
    if (phase_ == phase::silent && state_->source().has_unread()) {
      phase_ = phase::greeting;
      begin_timer(table_->options.handshake_timeout);
    }
    if (!handshake_) handshake_.emplace(*state_, table_->options.self);
    switch (state_->try_receive(message_)) {
      case connection::arrival::nothing:
        return false;
      case connection::arrival::end:
        throw error(errc::unavailable, str(peer(), " ended the connection during the handshake"));
      case connection::arrival::something:
        break;
    }
    if (!is_settled()) return true;
  } catch (const error& e) {
    table_->log_refusal(peer().address, e, not_admitted_);
    refuse(e);
    return true;
  }
  open();
  return true;
}

/// Handles a message of the handshake; true if that was the last one.
bool accepted_connection::is_settled() {
  if (local_) return replace_offering(), true;
  if (phase_ == phase::welcome) {
    check_kind(message_, message_kind::settle);
    return table_->withdraw(*this);
  }
  const bool welcome = handshake_->on_message(
      message_,
      [&](const peer_info& caller) {
        not_admitted_ = true;
        table_->handler.admit(caller);
        not_admitted_ = false;
      },
      [&] {
        terms_ = handshake_->terms();
        return table_->offer_to(*this);
      });
  if (!welcome) return false;
  if (!offered_) return terms_ = handshake_->terms(), true;
  phase_ = phase::welcome;
  return false;
}

/// On a local socket: replaces the TCP connection that offered it.
void accepted_connection::replace_offering() {
  check_kind(message_, message_kind::settle);
  local_offer::token token;
  from_bytes(message_.meta, token);
  const auto before = table_->claim(token);
  if (!before) fail(errc::unauthenticated, "the caller was not offered this local socket");
  state_->peer = before->peer();
  state_->peer.local = true;
  terms_ = before->terms_;
  message welcome(message_kind::welcome);
  welcome.meta = to_bytes(before->offer_.server);
  state_->send(welcome);
  before->replaced_ = true;
  before->close();
  serving_threads::instance().serve(before);
}

void accepted_connection::open() {
  ++turn_;  // cancels the timer
  const listen_options& o = table_->options;
  state_->set_limits(o.limits);
  state_->agree({o.self.heartbeat_timeout, o.self.window}, terms_);
  handshake_.reset();
  message_ = {};
  if (!table_->count_open(*this)) return end(nullptr);
  connection_ = std::make_shared<connection>(state_);
  try {
    table_->handler.on_open(connection_);
  } catch (const error& e) {
    table_->count_closed();
    return refuse(e);
  }
  handler_knows_ = true;
  logging::info(table_->address, " accepted ", peer(), local_ ? " on a local socket" : "");
}

served::work accepted_connection::receive() {
  if (std::exchange(rested_, false)) wait_.woke();
  for (int i = 0; i < messages_at_once; ++i) {
    try {
      switch (state_->try_receive(message_)) {
        case connection::arrival::nothing:
          if (state_->has_received_part()) wait_.on_partial_arrival(state_->source());
          return i > 0 ? work::all : work::none;
        case connection::arrival::end:
          return end(nullptr), work::some;
        case connection::arrival::something:
          break;
      }
    } catch (const error& e) {
      end(std::make_shared<error>(e));
      return work::some;
    }
    if (i == 0) wait_.on_arrival(state_->source());
    if (message_.spinning)
      wait_.set_crowded_until(arrival_wait::crowded_until(
          {message_.spinning,
           std::chrono::steady_clock::now() + std::chrono::microseconds(message_.spinning_for)}));
    if (auto why = dispatch()) return end(std::move(why)), work::some;
    trim(message_);
  }
  return work::some;
}

/// Returns why the connection must end; null if it goes on.
std::shared_ptr<const error> accepted_connection::dispatch() {
  const spinning_for_this sender(message_.spinning,
                                 std::chrono::microseconds(message_.spinning_for));
  const auto id = message_.id;
  auto failure = failure_of([&] { table_->handler.on_message(connection_, std::move(message_)); });
  if (failure && id != 0 && !state_->lost())
    failure = failure_of([&] {
      message answer;
      encode_error(answer, id, *failure);
      connection_->send(answer);
    });
  if (!failure || state_->lost()) return nullptr;
  static logging::limited failed;
  failed.log(logging::level::warning, "the handler of a message from ", peer(),
             " failed: ", printable(failure->what()));
  if (failure != out_of_memory && failure->code() != errc::data_loss) return nullptr;
  // Somebody may wait for what the message would have brought.
  state_->refuse(*failure);
  return failure;
}

void accepted_connection::refuse(const error& why) {
  handshake_.reset();
  wait_for_end();
  state_->refuse(why);
}
/// Gives the peer some time to read why it was refused.
void accepted_connection::wait_for_end() {
  phase_ = phase::refused;
  leaving_ = true;
  begin_timer(table_->options.time_to_hear);
}
bool accepted_connection::drop_input() {
  try {
    if (!late_ && state_->try_receive(message_) != connection::arrival::end) return false;
  } catch (const error&) {
    // The peer is gone.
  }
  state_->close();
  end(nullptr);
  return true;
}

void accepted_connection::end(const std::shared_ptr<const error>& why) {
  const bool was_open = phase_ == phase::open;
  ++turn_;
  if (why) (void)failure_of([&] { logging::info(table_->address, ": ", printable(why->what())); });
  // After an invalid frame, the caller has been told.
  const bool told = why && !state_->closed_here() && why->code() != errc::unavailable;
  if (!told || failure_of([&] { wait_for_end(); })) {
    phase_ = phase::ended;
    state_->close();
    state_->on_event(nullptr);
  }
  if (was_open) {
    table_->count_closed();
    // The handler may have stopped the listener and be destroyed by now.
    if (handler_knows_ && table_->has(*this)) table_->handler.on_close(connection_, why.get());
    connection_.reset();
  }
  if (phase_ == phase::ended) table_->remove(*this);
}

}  // namespace deft::detail
