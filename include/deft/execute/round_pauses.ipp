// SPDX-License-Identifier: Apache-2.0
// deft/execute/round_pauses.ipp: how a session, such as a saver's, keeps rounds from being applied,
// and how one knows that variables are of one round.
#pragma once
#include <deft/execute/replica_kernels.ipp>

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

namespace {

/// Of a session that need not be a replica.
template <class Op>
class pause_of_rounds : public value_kernel {
 public:
  explicit pause_of_rounds(const value_request& r) {
    const auto o = decode<Op>(r.node.attributes);
    barrier_ = r.resources.get<replica_barrier>({"replica_barrier", o.container, o.barrier}, [&] {
      return std::make_shared<replica_barrier>(o.needed, o.total);
    });
    pause_ = barrier_->pause_of(r.session);
  }

 protected:
  std::shared_ptr<replica_barrier> barrier_;
  std::shared_ptr<replica_barrier::pause> pause_;
};
struct pause_kernel final : pause_of_rounds<op::pause_rounds> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call& c) const override {
    return pause_->begin(c.ticket(), c.make_waker(), c.step().step);
  }
};
struct resume_kernel final : pause_of_rounds<op::resume_rounds> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call& c) const override {
    pause_->end(c.step().step);
    return true;
  }
};

struct restart_kernel final : pause_of_rounds<op::restart_rounds> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call&) const override {
    barrier_->restart();
    return true;
  }
};

struct rounds_generation_kernel final : pause_of_rounds<op::rounds_generation> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call& c) const override {
    c.output(0, any_array::scalar(barrier_->generation()));
    return true;
  }
};

struct await_whole_kernel final : pause_of_rounds<op::await_whole_rounds> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call& c) const override { return barrier_->is_whole(c.ticket(), c.make_waker()); }
};

}  // namespace
}  // namespace deft::ext
