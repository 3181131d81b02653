// SPDX-License-Identifier: Apache-2.0
// deft/transport/connection.ipp: events, heartbeats, receiving and closing.
#pragma once
#include <algorithm>
#include <cerrno>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/printable.hpp>
#include <deft/transport/archive.hpp>
#include <deft/transport/connection_state.hpp>
#include <new>

namespace deft::ext {}  // namespace deft::ext

namespace deft::detail {

namespace {
constexpr int beats_of_timeout = 4;  // so that one late heartbeat does no harm
}  // namespace

connection_state::connection_state(std::unique_ptr<stream> s, const wire_limits& limits)
    : stream_(std::move(s)), reader_(limits), wait_(most_spin) {}

void connection_state::on_event(std::function<void()> tell) {
  auto kept = tell ? std::make_shared<const std::function<void()>>(std::move(tell)) : nullptr;
  {
    std::lock_guard lock(event_guard_);
    tell_.swap(kept);
    if (armed_ || listed_ || !tell_) return;
    listed_ = true;
  }
  loop().add_unarmed(weak_from_this());
}

void connection_state::arm() {
  {
    std::lock_guard lock(event_guard_);
    listed_ = false;
    if (armed_ || !tell_) return;
    armed_ = true;
  }
  const auto failure = failure_of([&] {
    stream_->wait(stream::direction::in, [self = shared_from_this()] { self->event(true); });
  });
  if (failure) event(false);
}

/// `sound`: it can wait for the next one. Otherwise nobody would learn of what arrives.
void connection_state::event(bool sound) {
  std::shared_ptr<const std::function<void()>> tell;
  {
    std::lock_guard lock(event_guard_);
    armed_ = false;
    tell = tell_;
    if (!tell) return;
    listed_ = sound;
  }
  if (sound) sound = !failure_of([&] { loop().add_unarmed(weak_from_this()); });
  if (!sound) break_off("out of memory");
  (*tell)();
}

void connection_state::agree(const peer_terms& own, const peer_terms& of_peer) {
  using std::chrono::milliseconds;
  on_the_way_.set_window(of_peer.window);
  taken_.set_window(own.window);
  timeout_ = interval_ = own.timeout;
  if (of_peer.timeout.count() && (!interval_.count() || of_peer.timeout < interval_))
    interval_ = of_peer.timeout;
  if (!interval_.count()) return;
  interval_ = std::max(interval_ / beats_of_timeout, milliseconds(1));
  last_heard_ = last_said_ = std::chrono::steady_clock::now();
  loop().add_beating(shared_from_this());
}

std::chrono::milliseconds connection_state::beat_interval() const {
  return lost() ? std::chrono::milliseconds(0) : interval_;
}

void connection_state::beat(std::chrono::steady_clock::time_point now) {
  if (lost()) return;
  // Unread bytes are a sign of life too: the reader may be busy.
  if (stream_->has_unread()) last_heard_ = now;
  if (received_.exchange(false, std::memory_order_relaxed)) last_heard_ = now;
  if (sent_.exchange(false, std::memory_order_relaxed)) last_said_ = now;
  if (timeout_.count() && now - last_heard_ >= timeout_)
    return break_off(str("nothing received from it for ", duration_text(timeout_)));
  // If something is queued, a heartbeat would not arrive any earlier.
  if (now - last_said_ + interval_ / 2 < interval_ || writes()) return;
  try {
    send(message(message_kind::heartbeat));
  } catch (const std::exception&) {
    // The connection was lost in the meantime, or there is no memory: the next one may arrive.
  }
}

std::string connection_state::why_lost() const {
  std::lock_guard lock(guard_);
  return str("lost ", peer, why_lost_.empty() ? "" : ": ", why_lost_);
}
void connection_state::throw_lost() { throw error(errc::unavailable, why_lost()); }

void connection_state::break_off(std::string_view why) noexcept {
  {
    std::lock_guard lock(guard_);
    // Without memory it is lost without a reason.
    (void)failure_of([&] {
      if (why_lost_.empty()) why_lost_ = why;
    });
    drop_held();
  }
  lost_.store(true, std::memory_order_release);
  stream_->shut(true);
  loop().wake_keeper();
}

void connection_state::close() {
  closed_.store(true, std::memory_order_release);
  break_off("it was closed here");
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return !writing_; });
  queue_.clear();
  queued_ = 0;
  drop_held();
  changed_.notify_all();
}

bool connection_state::drain(deadline until) {
  std::unique_lock lock(guard_);
  auto done = [&] { return (writer_ == writer::none && held_.empty()) || lost(); };
  if (until == no_deadline) {
    changed_.wait(lock, done);
    return true;
  }
  return changed_.wait_until(lock, until, done);
}

std::size_t connection_state::queued() const {
  std::lock_guard lock(guard_);
  return queued_ + held_bytes_;
}
bool connection_state::writes() const {
  std::lock_guard lock(guard_);
  return queued_ > 0;
}

void connection_state::refuse(const error& why) {
  try {
    message m(message_kind::refused);
    out_archive(m.meta) & why.code() & why.message();
    send(m);
    std::lock_guard lock(guard_);
    if (why_lost_.empty()) why_lost_ = why.message();
  } catch (const std::exception&) {
    // The peer is gone, or there is no memory to tell it.
  }
  refused_.store(true, std::memory_order_release);
  lost_.store(true, std::memory_order_release);
  // If both directions were shut down with bytes unread, the kernel would send a reset, which would
  // overtake the message.
  if (queued() == 0) stream_->shut(false);
}

/// After a refusal.
connection::arrival connection_state::drop_input() {
  std::byte junk[4096];
  for (int i = 0; i < 16; ++i) {
    const auto n = stream_->read(junk, sizeof junk);
    if (n == -EAGAIN) return connection::arrival::nothing;
    if (n > 0) continue;
    break_off("");
    return connection::arrival::end;
  }
  return connection::arrival::nothing;
}

connection::arrival connection_state::step(message& m) {
  using arrival = connection::arrival;
  if (refused_.load(std::memory_order_acquire)) return drop_input();
  try {
    do {
      const auto status = reader_.advance(*stream_, m);
      const bool has_read = reader_.has_read();
      if (has_read) received_.store(true, std::memory_order_relaxed);
      part_ = has_read && status == frame_reader::status::more && reader_.is_within_message();
      if (status == frame_reader::status::more) return arrival::nothing;
      if (status == frame_reader::status::end) {
        const bool broken = lost();
        break_off("it ended the connection");
        if (broken && !closed_here()) throw_lost();
        return arrival::end;
      }
      if (m.kind == message_kind::credit) give_back({m.session, m.flags});
    } while (m.kind == message_kind::heartbeat || m.kind == message_kind::credit);
    if (m.takes_credit) note_credit(m);
  } catch (const error& e) {
    if (closed_here()) return arrival::end;
    if (e.code() != errc::unavailable) {
      refuse(e);
      throw;
    }
    break_off(e.message());
    throw_lost();
  } catch (const std::bad_alloc&) {
    error e(errc::resource_exhausted, "out of memory while receiving a message");
    refuse(e);
    throw e;
  }
  if (m.kind == message_kind::refused) {
    auto code = errc::unavailable;
    std::string why;
    try {
      from_bytes(m.meta, code, why);
    } catch (const error&) {
      why = "its reason cannot be decoded";
    }
    bool known = code >= errc::cancelled && code <= errc::unauthenticated;
    why = printable(why);
    refusal_ = std::make_shared<error>(known ? code : errc::unknown, why);
    break_off(str("it refused: ", why));
    throw_lost();
  }
  return arrival::something;
}

connection::arrival connection_state::try_receive(message& m) {
  if (closed_here()) return connection::arrival::end;
  return step(m);
}

bool connection_state::receive(message& m, deadline until) {
  event_loop::polling_scope here(loop());
  // Shared, as an event may arrive after this call.
  auto sleeper = std::make_shared<event_loop::sleeper>();
  on_event([sleeper, &l = loop()] { l.wake(*sleeper); });
  struct told_no_more {
    connection_state& c;
    ~told_no_more() { c.on_event(nullptr); }
  } ends{*this};

  const auto began = std::chrono::steady_clock::now();
  wait_.restart();
  for (;;) {
    switch (try_receive(m)) {
      case connection::arrival::something:
        wait_.on_arrival(*stream_);
        return true;
      case connection::arrival::end:
        return false;
      case connection::arrival::nothing:
        if (part_) wait_.on_partial_arrival(*stream_);
        break;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= until)
      throw error(errc::deadline_exceeded, str("timed out after ", duration_text(now - began),
                                               " waiting for a message from ", peer));
    if (wait_.look_again(now)) {
      loop().poll();
      continue;
    }
    arm();
    loop().sleep(*sleeper, until);
    wait_.woke();
  }
}

}  // namespace deft::detail

namespace deft::ext {

connection::connection(std::shared_ptr<detail::connection_state> state)
    : state_(std::move(state)) {}
connection::~connection() { state_->close(); }
void connection::suspend_spinning() { state_->add_spin_suspensions(1); }
void connection::resume_spinning() { state_->add_spin_suspensions(-1); }
void connection::send(const message& m) {
  if (m.kind == message_kind::error && queued() > 2 * most_bytes()) state_->close();
  state_->send(m);
}
bool connection::receive(message& m, deadline until) { return state_->receive(m, until); }
connection::arrival connection::try_receive(message& m) { return state_->try_receive(m); }
bool connection::drain(deadline until) { return state_->drain(until); }
void connection::copy_borrowed() { state_->copy_borrowed(); }
std::size_t connection::queued() const { return state_->queued(); }
std::size_t connection::most_bytes() {
  static const std::size_t most = physical_memory() / 4;
  return most;
}
void connection::begin_call(std::size_t bytes) {
  const std::size_t calls = calls_.fetch_add(1, std::memory_order_relaxed),
                    before = call_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (calls < most_calls && before <= most_bytes()) return;
  end_call(bytes);
  fail(errc::resource_exhausted, peer(), " has ", calls, " calls of ", before,
       " bytes that are not answered yet (limit ", most_calls, " calls, or ", most_bytes(),
       " bytes)");
}
void connection::end_call(std::size_t bytes) noexcept {
  calls_.fetch_sub(1, std::memory_order_relaxed);
  call_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}
void connection::close() { state_->close(); }
bool connection::lost() const { return state_->lost(); }
const peer_info& connection::peer() const { return state_->peer; }

}  // namespace deft::ext
