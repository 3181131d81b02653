// SPDX-License-Identifier: Apache-2.0
// deft/session/server/client_sessions.ipp: what clients have opened, planned and begun.
#pragma once
#include <deft/session/server/client_sessions.hpp>
#include <deft/transport/handshake.hpp>

namespace deft {

std::uint64_t client_session::keep(std::shared_ptr<ready_plan> plan) {
  std::lock_guard lock(guard_);
  plans_.emplace(++last_plan_, std::move(plan));
  return last_plan_;
}

std::shared_ptr<ready_plan> client_session::plan(std::uint64_t number) {
  std::lock_guard lock(guard_);
  auto at = plans_.find(number);
  if (at == plans_.end()) fail(errc::not_found, "there is no plan ", number, " of this session");
  return at->second;
}

void client_session::drop(std::uint64_t number) {
  std::shared_ptr<ready_plan> dropped;  // destroyed without the lock
  std::lock_guard lock(guard_);
  auto at = plans_.find(number);
  if (at != plans_.end()) dropped = std::move(at->second), plans_.erase(at);
}

std::shared_ptr<const std::atomic<bool>> client_session::begin_run(std::uint64_t id) {
  auto flag = std::make_shared<std::atomic<bool>>(false);
  std::lock_guard lock(guard_);
  running_[id] = flag;
  return flag;
}

void client_session::cancel_run(std::uint64_t id) {
  std::lock_guard lock(guard_);
  auto at = running_.find(id);
  if (at != running_.end()) *at->second = true;
}

void client_session::end_run(std::uint64_t id) {
  std::lock_guard lock(guard_);
  running_.erase(id);
}

std::uint64_t client_sessions::open(std::shared_ptr<client_session> s) {
  const std::uint64_t id = random_incarnation();
  std::lock_guard lock(guard_);
  if (closed_) fail(errc::unavailable, "the server is stopping");
  all_.emplace(id, std::move(s));
  return id;
}

std::shared_ptr<client_session> client_sessions::find(std::uint64_t id) {
  std::lock_guard lock(guard_);
  if (closed_) fail(errc::unavailable, "the server is stopping");
  auto at = all_.find(id);
  if (at == all_.end()) fail(errc::not_found, "there is no session ", id);
  return at->second;
}

void client_sessions::close(std::uint64_t id) {
  std::shared_ptr<client_session> s;
  {
    std::lock_guard lock(guard_);
    auto at = all_.find(id);
    if (at == all_.end()) return;
    s = std::move(at->second);
    all_.erase(at);
  }
  s->master().close();
}

void client_sessions::close_all_of(const connection* owner) {
  std::vector<std::shared_ptr<client_session>> gone;
  {
    std::lock_guard lock(guard_);
    std::erase_if(all_, [&](auto& s) {
      if (s.second->owner() != owner) return false;
      gone.push_back(s.second);
      return true;
    });
  }
  for (auto& s : gone) s->master().close();
}

std::vector<std::shared_ptr<client_session>> client_sessions::close() {
  std::vector<std::shared_ptr<client_session>> all;
  std::lock_guard lock(guard_);
  closed_ = true;
  for (auto& [id, s] : all_) all.push_back(std::move(s));
  all_.clear();
  return all;
}

}  // namespace deft
