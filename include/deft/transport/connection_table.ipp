// SPDX-License-Identifier: Apache-2.0
// deft/transport/connection_table.ipp: the list of connections, and which of them make room for
// others.
#pragma once
#include <algorithm>
#include <deft/core/printable.hpp>
#include <deft/transport/connection_table.hpp>

namespace deft::detail {

void connection_table::add(std::unique_ptr<stream> s, const std::string& from, bool local) {
  auto state =
      std::make_shared<connection_state>(std::move(s), wire_limits::before_authentication());
  state->peer.address = from;
  auto c = std::make_shared<accepted_connection>(shared_from_this(), std::move(state), local);
  {
    std::lock_guard lock(guard_);
    if (stopping_) return;
    if (all_.size() >= most) {
      turned_away_.log(logging::level::warning, address, " turned ", from,
                       " away: too many connections (limit ", most, ")");
      return;
    }
    make_room(c->host());
    all_.emplace(c.get(), c);
    not_open_yet_.push_back(c);
  }
  c->begin();
}

/// Makes room for a caller from `host`: closes the connection that has been in the handshake
/// longest, and that which was refused first, if there are too many.
void connection_table::make_room(const std::string& host) {
  const auto at_once = static_cast<std::size_t>(options.max_handshakes);
  std::size_t shaking = 0, of_host = 0;
  std::size_t refused = 0;
  accepted_connection *oldest = nullptr, *oldest_of_host = nullptr, *first_refused = nullptr;
  for (auto& c : not_open_yet_) {
    if (c->is_refused() && ++refused == 1) first_refused = c.get();
    if (!c->shakes_hands()) continue;
    if (++shaking == 1) oldest = c.get();
    if (c->host() == host && ++of_host == 1) oldest_of_host = c.get();
  }
  if (refused >= at_once) first_refused->close();
  accepted_connection* const goes = of_host >= std::max<std::size_t>(1, at_once / 2)
                                        ? oldest_of_host
                                    : shaking >= at_once ? oldest
                                                         : nullptr;
  if (!goes) return;
  turned_away_.log(logging::level::warning, address, " turned ", goes->peer().address,
                   " away: too many connections in the handshake (limit ", at_once, ")");
  goes->close();
}

local_offer connection_table::offer_to(accepted_connection& c) {
  local_offer offer;
  if (local_name.empty()) return offer;
  random_bytes(offer.caller.data(), offer.caller.size());
  random_bytes(offer.server.data(), offer.server.size());
  offer.name = local_name;
  std::lock_guard lock(guard_);
  c.take_offer(offer);
  return offer;
}
std::shared_ptr<accepted_connection> connection_table::claim(const local_offer::token& token) {
  std::lock_guard lock(guard_);
  for (const auto& c : not_open_yet_)
    if (c->has_offered(token)) return c->withdraw_offer(), c;
  return nullptr;
}
bool connection_table::withdraw(accepted_connection& c) {
  std::lock_guard lock(guard_);
  return c.withdraw_offer();
}

bool connection_table::count_open(accepted_connection& c) {
  std::lock_guard lock(guard_);
  if (stopping_) return false;
  c.mark_open();
  not_open_yet_.remove_if([&](const auto& i) { return i.get() == &c; });
  ++open_;
  return true;
}
void connection_table::count_closed() {
  std::lock_guard lock(guard_);
  --open_;
}
bool connection_table::begin_helping() {
  std::lock_guard lock(guard_);
  if (stopping_) return false;
  ++helping_;
  return true;
}
void connection_table::end_helping() {
  std::lock_guard lock(guard_);
  if (--helping_ == 0 && stopping_) changed_.notify_all();
}
std::size_t connection_table::count() const {
  std::lock_guard lock(guard_);
  return open_;
}
bool connection_table::has(const accepted_connection& c) const {
  std::lock_guard lock(guard_);
  return all_.contains(&c);
}
void connection_table::remove(const accepted_connection& c) {
  std::lock_guard lock(guard_);
  not_open_yet_.remove_if([&](const auto& i) { return i.get() == &c; });
  all_.erase(&c);
  if (stopping_) changed_.notify_all();
}

void connection_table::log_refusal(const std::string& from, const error& why, bool warns) {
  // A caller that only probes the port is not worth a warning.
  const bool probes = why.code() == errc::unavailable && !warns;
  const auto level = probes || stopping_ ? logging::level::info : logging::level::warning;
  refused_.log(level, address, " refused ", from, ": ", printable(why.message()));
}

bool connection_table::stop() {
  std::lock_guard lock(guard_);
  return !stopping_.exchange(true);
}
void connection_table::close_all() {
  std::lock_guard lock(guard_);
  for (auto& [key, c] : all_) c->close();
  loop.wake_keeper();
}
void connection_table::wait_for_all() {
  std::unique_lock lock(guard_);
  const serving_threads::blocking_region while_waiting;
  // What remains is the connection whose handler called.
  changed_.wait(lock, [&] {
    return helping_ == 0 && all_.size() == all_.count(accepted_connection::current());
  });
  not_open_yet_.clear();
  all_.clear();
}

}  // namespace deft::detail
