// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/pauses.ipp: how a session, such as a saver's, keeps rounds from being
// applied, and how one knows that variables are of one round.
#pragma once
#include <deft/train/replicas/rounds.hpp>

namespace deft::ext {

std::shared_ptr<replica_barrier::pause> replica_barrier::pause_of(std::uint64_t session) {
  std::lock_guard lock(guard_);
  std::erase_if(pausers_, [](const auto& p) { return p.second.expired(); });
  auto& there = pausers_[session];
  auto held = there.lock();
  if (!held) there = held = std::make_shared<pause>(shared_from_this());
  return held;
}

std::vector<std::uint64_t> replica_barrier::ended_steps(const pause& p, std::uint64_t step) const {
  std::vector<std::pair<std::uint64_t, waker>> all;
  {
    std::lock_guard lock(guard_);
    for (const auto& [key, w] : pausing_)
      if (key.first == &p && key.second != step) all.emplace_back(key.second, w);
  }
  std::vector<std::uint64_t> ended;
  for (const auto& [other, w] : all)
    if (w.is_over()) ended.push_back(other);
  return ended;
}

bool replica_barrier::pause_for(const pause& p, std::uint64_t step, wait_list::ticket& t,
                                const waker& w) {
  const auto ended = ended_steps(p, step);
  std::lock_guard lock(guard_);
  expect_whole();
  for (const std::uint64_t other : ended) pausing_.erase({&p, other});
  pausing_.insert_or_assign({&p, step}, w);
  if (leader_) pauses_.add(t, w);
  return !leader_;
}

void replica_barrier::resume_for(const pause& p, std::uint64_t step) {
  const auto ended = ended_steps(p, step);
  wakers woken(*this);
  std::lock_guard lock(guard_);
  auto freed = pausing_.erase({&p, step});
  for (const std::uint64_t other : ended) freed += pausing_.erase({&p, other});
  if (!freed) {
    auto last = pausing_.end();
    for (auto i = pausing_.begin(); i != pausing_.end(); ++i)
      if (i->first.first == &p) last = i;
    if (last == pausing_.end()) return;
    pausing_.erase(last);
  }
  if (complete()) woken.leaders.next();
}

void replica_barrier::drop(const pause& p) {
  wakers woken(*this);
  std::lock_guard lock(guard_);
  const auto freed = std::erase_if(pausing_, [&](const auto& i) { return i.first.first == &p; });
  if (freed && complete()) woken.leaders.next();
}

}  // namespace deft::ext
