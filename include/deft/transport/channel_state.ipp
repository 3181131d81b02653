// SPDX-License-Identifier: Apache-2.0
// deft/transport/channel_state.ipp: calls over a connection, and their answers.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/core/printable.hpp>
#include <deft/transport/channel_state.hpp>

namespace deft::ext {

message& pending::get() {
  if (!done()) fail(errc::failed_precondition, "the answer of a call was taken before it arrived");
  if (error_) throw error(*error_);
  return answer_;
}
message pending::take() { return std::move(get()); }

}  // namespace deft::ext

namespace deft::detail {

namespace {
constexpr int messages_at_once = 64;  // of one channel, before the next channel
}

channel_state::channel_state(std::shared_ptr<connection_state> c, std::string peer,
                             std::weak_ptr<channel_group_state> group, channel_events events)
    : connection(std::move(c)),
      address(std::move(peer)),
      owner(std::move(group)),
      events_(std::move(events)) {}

std::shared_ptr<pending> channel_state::call(message& m,
                                             std::shared_ptr<answer_listener> listener) {
  auto p = std::make_shared<pending>();
  p->listener_ = std::move(listener);
  {
    std::lock_guard lock(guard_);
    p->id_ = m.id = ++last_id_;
    if (gone_) throw error(errc::unavailable, connection->why_lost());
    calls_.emplace(p->id_, p);
  }
  try {
    connection->send(m);
  } catch (...) {
    abandon(m.id);
    throw;
  }
  return p;
}

std::shared_ptr<pending> channel_state::take_call(std::uint64_t id) {
  std::lock_guard lock(guard_);
  const auto at = calls_.find(id);
  if (at == calls_.end()) return nullptr;
  auto p = std::move(at->second);
  calls_.erase(at);
  return p;
}

void channel_state::abandon(std::uint64_t id) {
  if (const auto p = take_call(id)) p->listener_.reset();  // it may hold the call
}

channel_state::pumped channel_state::pump() {
  std::unique_lock alone(pumping_, std::try_to_lock);
  if (!alone || gone()) return pumped::nothing;
  bool some = false;
  try {
    for (int i = 0; i < messages_at_once; ++i) {
      switch (connection->try_receive(incoming_)) {
        case deft::ext::connection::arrival::nothing:
          if (some) return pumped::some;
          return connection->has_received_part() ? pumped::part : pumped::nothing;
        case deft::ext::connection::arrival::end:
          end(lost("it ended the connection"));
          return pumped::some;
        case deft::ext::connection::arrival::something:
          some = true;
          deliver();
      }
    }
    told = true;  // more may have been read
  } catch (...) {
    const auto why = failure_of([] { throw; });
    end(why->code() == errc::unavailable ? why : lost(printable(why->message())));
  }
  return pumped::some;
}

void channel_state::deliver() {
  const bool answer =
      incoming_.kind == message_kind::reply || incoming_.kind == message_kind::error;
  if (!answer) {
    if (events_.on_message) events_.on_message(std::move(incoming_));
    return trim(incoming_);
  }
  const auto p = take_call(incoming_.id);
  if (!p) return;  // abandoned
  if (incoming_.kind == message_kind::error)
    p->error_ = failure_of([&] { throw decode_error(incoming_); });
  else
    std::swap(p->answer_, incoming_);
  if (p->listener_ && !p->error_)
    p->error_ = failure_of([&] { p->listener_->on_answer(p->answer_); });
  tell(*p);
}

void channel_state::tell(pending& p) {
  const auto listener = std::move(p.listener_);
  p.done_.store(true, std::memory_order_release);
  if (listener) return listener->answered(p);
  if (const auto h = owner.lock()) h->note_answer();
}

void channel_state::notice_loss() {
  if (connection->lost())
    end(failure_of([&] { throw error(errc::unavailable, connection->why_lost()); }));
}

std::shared_ptr<const error> channel_state::lost(std::string_view why) const {
  return make_failure(errc::unavailable, "lost ", connection->peer, ": ", why);
}

void channel_state::end(std::shared_ptr<const error> why) {
  const bool ours = connection->closed_here();
  connection->on_event(nullptr);
  // A message could not be handled, and somebody may wait for it.
  if (!connection->lost()) connection->close();
  if (fail_all(why) && !ours && events_.on_lost) events_.on_lost(*why);
}

bool channel_state::fail_all(std::shared_ptr<const error> why) {
  boost::unordered_flat_map<std::uint64_t, std::shared_ptr<pending>> calls;
  {
    std::lock_guard lock(guard_);
    if (std::exchange(gone_, true)) return false;
    calls.swap(calls_);
  }
  for (auto& [id, p] : calls) {
    p->error_ = why;
    tell(*p);
  }
  return true;
}

bool channel_state::gone() const {
  std::lock_guard lock(guard_);
  return gone_;
}

}  // namespace deft::detail

namespace deft::ext {}  // namespace deft::ext
