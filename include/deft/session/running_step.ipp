// SPDX-License-Identifier: Apache-2.0
// deft/session/running_step.ipp: running, parking, resuming and stopping a step.
#pragma once
#include <deft/core/log.hpp>
#include <deft/session/protocol.hpp>
#include <deft/session/running_step.hpp>
#include <deft/session/thread_cache.hpp>
#include <deft/session/worker.hpp>

namespace deft {

registered_part::registered_part(plan::part part, const task_resources& task,
                                 const incarnation_list& peers)
    : frame_pool(std::move(part), task) {
  auto incarnation_of = [&](const crossing& c) {
    auto at = std::ranges::find(peers, to_string(*c.peer), &incarnation_list::value_type::first);
    return at == peers.end() ? 0 : at->second;
  };
  for (const auto& s : code().sends()) receivers_.push_back(incarnation_of(s));
  for (const auto& r : code().receives()) senders_.push_back(incarnation_of(r));
}

bool registered_part::expects(std::size_t receive, const std::string& name,
                              std::uint64_t incarnation) const {
  const std::uint64_t sender = senders_[receive];
  return (!sender || !incarnation || sender == incarnation) &&
         to_string(*code().receives()[receive].peer) == name;
}

void registered_part::took(std::chrono::nanoseconds stretch) {
  // Changing threads costs some 25 µs, so that it is not worth it below this.
  constexpr auto long_stretch = std::chrono::milliseconds(1);
  int now = slowness_.load(std::memory_order_relaxed);
  int next = stretch > long_stretch ? std::min(now + 1, 4) : std::max(now - 1, 0);
  if (next != now) slowness_.store(next, std::memory_order_relaxed);
}

running_step::running_step(std::shared_ptr<worker> w, std::uint64_t session, std::uint64_t step)
    : worker_(std::move(w)), session_(session), step_(step) {}

running_step::~running_step() { drop_early(); }

void running_step::drop_early() {
  early_.clear();
  worker_->early_bytes_ -= std::exchange(early_bytes_, 0);
}

bool running_step::begin(std::shared_ptr<registered_part> part, std::vector<feed_ref> feeds,
                         bool here, step_callback& done) {
  std::shared_ptr<const error> stopped;
  {
    std::lock_guard lock(guard_);
    if (phase_ != phase::waiting) return false;
    phase_ = phase::running;
    part_ = std::move(part);
    done_ = std::move(done);
    feeds_ = std::move(feeds);
    auto receives = part_->code().receives();
    for (std::size_t i = 0; i < receives.size(); ++i) numbers_.emplace(receives[i].key, i);
    arrived_.resize(receives.size());
    for (auto& [key, value] : early_) {
      auto at = numbers_.find(key);
      if (at != numbers_.end()) arrived_[at->second] = std::move(value);
    }
    drop_early();
    stopped = why_;
  }
  if (stopped) {
    finish(std::move(stopped));
    return true;
  }
  go(
      [](running_step& s) {
        s.frame_ = s.part_->take();
        return s.frame_->start(s.feeds_, {s.step_}, &s, &s.stopping_);
      },
      here);
  return true;
}

void running_step::deliver(std::uint64_t key, any_array value) {
  constexpr std::size_t most_early = 65'536;
  {
    std::lock_guard lock(guard_);
    switch (phase_) {
      case phase::ended:
        return;
      case phase::waiting:
        if (why_) return;
        early_bytes_ += value.bytes();
        worker_->early_bytes_ += value.bytes();
        early_.emplace_back(key, std::move(value));
        if (early_.size() <= most_early && worker_->early_bytes_ <= worker::most_early_bytes)
          return;
        // Told to whoever begins it.
        why_ = std::make_shared<const error>(
            errc::resource_exhausted, str(to_string(worker_->task().name()),
                                          " got too many values before step ", step_, " began"));
        return drop_early();
      default:
        break;
    }
    auto at = numbers_.find(key);
    if (at == numbers_.end()) return logging::warning("a value came that no receive waits for");
    arrived_[at->second] = std::move(value);
    if (phase_ != phase::parked || parked_on_ != at->second) return;
    phase_ = phase::running;
  }
  go([](running_step& s) { return s.frame_->resume(); }, false);
}

void running_step::stop(const std::shared_ptr<const error>& why) {
  {
    std::lock_guard lock(guard_);
    if (phase_ == phase::ended) return;
    if (!why_) why_ = why;
    stopping_ = true;
    if (phase_ == phase::running) return;  // it sees the flag
    if (phase_ == phase::waiting) {
      phase_ = phase::ended;
      drop_early();
    } else {
      phase_ = phase::running;
    }
  }
  if (part_)
    finish(why);
  else
    worker_->ended(session_, step_);
}

void running_step::peer_lost(const std::string& name, std::uint64_t incarnation, const error& why) {
  bool waits = false;
  {
    std::lock_guard lock(guard_);
    if (phase_ == phase::ended) return;
    lost_.push_back({name, incarnation, why});
    waits = phase_ == phase::parked && part_->expects(parked_on_, name, incarnation);
  }
  if (waits) stop(std::make_shared<const error>(why));
}

void running_step::send(std::size_t number, const any_array& value) {
  const crossing& c = part_->code().sends()[number];
  message m = make_message(request::tensor, session_, step_);
  m.flags = static_cast<std::uint32_t>(c.key);
  m.tensors.push_back(value);
  worker_->link(c.peer, deadline_in(worker::reconnect_time), part_->receiver(number))->post(m);
}

bool running_step::receive(std::size_t number, any_array& value) {
  std::lock_guard lock(guard_);
  if (why_) throw error(*why_);
  if (!arrived_[number].valid()) {
    for (const auto& l : lost_)
      if (part_->expects(number, l.name, l.incarnation)) throw error(l.why);
    parked_on_ = number;
    phase_ = phase::parked;
    return false;
  }
  value = std::exchange(arrived_[number], any_array());
  return true;
}

template <class F>
void running_step::go(F run, bool here) {
  if (here || !part_->slow()) return go_now(run);
  run_elsewhere([self = shared_from_this(), run] { self->go_now(run); });
}

/// Nothing of this may be touched after the part has parked: another thread has it.
template <class F>
void running_step::go_now(F run) {
  auto self = shared_from_this();
  registered_part& part = *part_;
  auto begin = std::chrono::steady_clock::now();
  bool over = true;
  auto failure = caught([&] { over = run(*this); });
  part.took(std::chrono::steady_clock::now() - begin);
  if (over || failure) finish(std::move(failure));
}

void running_step::finish(std::shared_ptr<const error> failure) {
  auto self = shared_from_this();
  {
    std::lock_guard lock(guard_);
    phase_ = phase::ended;
    arrived_.clear();
    // The executor knows only that it was to stop; who asked for it knows why.
    if (failure && why_ && failure->code() == errc::cancelled)
      failure = std::make_shared<const error>(why_->code(), why_->message(), failure->node(),
                                              failure->where(), failure->device());
  }
  worker_->ended(session_, step_);
  step_outcome o;
  o.pool = part_;
  if (failure) {
    if (frame_) part_->give_back(std::move(frame_));
    o.failure = std::move(failure);
  } else {
    o.frame = std::move(frame_);
  }
  auto done = std::move(done_);
  done(std::move(o));
}

}  // namespace deft
