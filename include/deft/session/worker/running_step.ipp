// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/running_step.ipp: starts, resumes and stops a step, and moves its values.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/core/limited_log.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/worker/running_step.hpp>
#include <deft/session/worker/worker.hpp>
#include <deft/transport/event_loop.hpp>

namespace deft::ext {

running_step::running_step(std::shared_ptr<worker> w, std::uint64_t session, std::uint64_t step,
                           std::shared_ptr<step_journal> journal,
                           std::shared_ptr<early_bytes> early)
    : worker_(std::move(w)),
      session_(session),
      step_(step),
      begun_after_(worker_->last_connection()),
      journal_(std::move(journal)),
      all_early_(std::move(early)),
      context_{.step = step, .exchange = this, .stop = stopping_token_} {}

running_step::~running_step() { take_early(); }

/// Called with the lock held. The caller destroys the values after releasing it, as that returns
/// credit to their senders.
std::vector<wire::tensors> running_step::take_early() {
  *all_early_ -= std::exchange(early_bytes_, 0);
  return std::exchange(early_, {});
}

bool running_step::begin(const wire::run_part& order, std::shared_ptr<registered_part> part,
                         std::vector<feed_ref> feeds, std::shared_ptr<connection> master,
                         step_callback& done) {
  std::shared_ptr<const error> stopped;
  std::vector<wire::tensors> early;
  {
    std::lock_guard lock(guard_);
    if (phase_ != phase::waiting) return false;
    phase_ = phase::running;
    self_ = shared_from_this();
    under_way_ = worker_->background().begin();
    part_ = std::move(part);
    done_ = std::move(done);
    master_ = std::move(master);
    feeds_ = std::move(feeds);
    stopped = failure_of([&] {
      prepare(order);
      early = take_early();
      for (auto& values : early) take(values);
    });
    if (!stopped) stopped = why_;
  }
  early.clear();
  if (stopped) {
    finish(std::move(stopped));
    return true;
  }
  go(
      [](running_step& s) {
        std::unique_ptr<executable::frame> frame;
        // frame_ is set before the frame starts, as another thread may end it.
        auto failure = failure_of([&] { frame = s.part_->take(); });
        if (failure) return s.finish(std::move(failure));
        executable::frame& f = *frame;
        s.frame_ = std::move(frame);
        bool over = true;
        failure = failure_of([&] { over = f.start(s.feeds_, s.context_, s); });
        if (over) s.finish(std::move(failure));
      },
      0);
  return true;
}

/// Called with the lock held.
void running_step::prepare(const wire::run_part& order) {
  context_.draw = draw_counter(part_->stream(), order.draw);
  for (const auto& f : feeds_) add_bytes(f.bytes());
  if (order.trace) recorder_ = std::make_unique<trace_recorder>();
  context_.observer = recorder_.get();
  arrivals_.resize(part_->code().receives().size());
  outgoing_.resize(part_->destinations().size());
}

void running_step::deliver(wire::tensors&& values) {
  std::vector<waker> waiting;
  std::vector<wire::tensors> dropped;
  {
    std::lock_guard lock(guard_);
    switch (phase_) {
      case phase::ended:
        return;
      case phase::waiting:
        if (!why_) dropped = keep_early(std::move(values));
        return;
      case phase::running:
        waiting = take(values);
    }
  }
  for (auto& w : waiting) w();
}

/// Returns the values to drop, if there are too many.
std::vector<wire::tensors> running_step::keep_early(wire::tensors&& values) {
  constexpr std::size_t most_messages = 65'536, about_a_value = 128;
  std::size_t bytes = 0;
  for (const auto& v : values.values) bytes += v.bytes() + about_a_value;
  early_bytes_ += bytes;
  *all_early_ += bytes;
  early_.push_back(std::move(values));
  if (early_.size() <= most_messages && *all_early_ <= worker::most_early_bytes) return {};
  // begin() reports it.
  why_ = make_failure(errc::resource_exhausted, to_string(worker_->task().name()),
                      " received too many values for step ", step_, " before it began");
  return take_early();
}

/// Called with the lock held. Returns the lanes to wake.
std::vector<waker> running_step::take(wire::tensors& values) {
  std::vector<waker> waiting;
  for (std::size_t i = 0; i < values.keys.size(); ++i) {
    const auto number = part_->receive_of(values.keys[i]);
    if (!number || *number >= arrivals_.size()) {  // there are none if there was no memory
      static logging::limited stray;
      stray.log(logging::level::warning, "step ", step_,
                " received a value that none of its nodes receives");
      continue;
    }
    arrival& a = arrivals_[*number];
    a.value = std::move(values.values[i]);
    add_bytes(a.value.bytes());
    if (std::exchange(a.awaited, false)) waiting.push_back(std::move(a.waiting));
  }
  return waiting;
}

bool running_step::stop(const std::shared_ptr<const error>& why) {
  bool begun = false;
  std::vector<wire::tensors> dropped;
  {
    std::lock_guard lock(guard_);
    if (phase_ == phase::ended) return false;
    if (!why_) why_ = why;
    begun = phase_ != phase::waiting;
    if (!begun) {
      phase_ = phase::ended;
      dropped = take_early();
    }
  }
  if (begun) {
    stopping_.request_stop();
  } else {
    journal_->end(step_, step_fate::unchanged);
    worker_->ended(session_, step_);
  }
  return true;
}

void running_step::peer_lost(const std::string& name, std::uint64_t incarnation, const error& why) {
  std::vector<waker> waiting;
  {
    std::lock_guard lock(guard_);
    if (phase_ == phase::ended) return;
    lost_.push_back({name, incarnation, why});
    if (phase_ == phase::running)
      for (std::size_t i = 0; i < arrivals_.size(); ++i)
        if (part_->expects(i, name, incarnation))
          waiting.push_back(std::exchange(arrivals_[i].waiting, waker()));
  }
  for (auto& w : waiting) w();
}

void running_step::send(std::size_t number, const any_array& value) {
  constexpr std::size_t most_bytes = 64 << 10, most_values = 1024;
  const std::size_t to = part_->destination_of(number);
  outgoing full;
  {
    std::lock_guard lock(sending_);
    outgoing& o = outgoing_[to];
    o.keys.push_back(static_cast<std::uint32_t>(part_->code().sends()[number].key));
    o.values.push_back(value);
    o.bytes += value.bytes();
    if (o.bytes < most_bytes && o.values.size() < most_values) return;
    full = std::exchange(o, outgoing());
  }
  post(part_->destinations()[to], std::move(full));
}

void running_step::flush(bool ends) {
  for (std::size_t i = 0; i < outgoing_.size(); ++i) {
    if (ends && master_ && part_->destinations()[i].is_master) continue;  // sent with the answer
    outgoing o;
    {
      std::lock_guard lock(sending_);
      if (outgoing_[i].values.empty()) continue;
      o = std::exchange(outgoing_[i], outgoing());
    }
    post(part_->destinations()[i], std::move(o));
  }
}

void running_step::post(const registered_part::destination& to, outgoing&& o) {
  const auto failure = failure_of([&] {
    message m = wire::pack(wire::tensors{session_, step_, std::move(o.keys), std::move(o.values)});
    if (master_ && to.is_master) return master_->send(m);
    if (const auto link = worker_->links().standing(to.task, to.incarnation)) return link->post(m);
    // The step may end here before these values are sent.
    worker_->links().when_linked(
        to.task, deadline_in(task_links::reconnect_time), to.incarnation, {},
        [self = shared_from_this(), task = to.task, m = std::move(m)](
            const std::shared_ptr<channel>& c, std::shared_ptr<const error> missing) {
          if (!missing) missing = failure_of([&] { c->post(m); });
          if (missing) self->could_not_send(task, missing);
        });
  });
  if (failure) could_not_send(to.task, failure);
}

void running_step::could_not_send(placement task, const std::shared_ptr<const error>& why) {
  {
    std::lock_guard lock(sending_);
    if (!unsent_) unsent_ = why;
  }
  if (!stop(why)) worker_->tell_of_loss(session_, step_, task, *why);
}

bool running_step::receive(std::size_t number, any_array& value, const waker& w) {
  std::lock_guard lock(guard_);
  if (why_) throw error(*why_);
  arrival& a = arrivals_[number];
  if (!a.value.valid()) {
    for (const auto& l : lost_)
      if (part_->expects(number, l.name, l.incarnation)) throw error(l.why);
    a.waiting = w;
    a.awaited = true;
    return false;
  }
  value = std::exchange(a.value, any_array());
  return true;
}

void running_step::wake(std::uint32_t lane) {
  go([lane](running_step& s) { s.frame_->resume(lane); }, lane + 1);
}
void running_step::ended() { finish(frame_->failure()); }

template <class F>
void running_step::go(F f, std::size_t segment) {
  if (!part_->slow(segment, bytes_) && !detail::event_loop::is_keeper()) return go_now(f, segment);
  try {
    worker_->background().run(
        [self = shared_from_this(), f, segment] { self->go_now(f, segment); });
  } catch (const std::exception&) {
    go_now(f, segment);  // no other thread can be started
  }
}

/// The step may have ended on another thread before `f` returns.
template <class F>
void running_step::go_now(F f, std::size_t segment) {
  auto self = shared_from_this();
  const auto part = part_;
  const std::size_t bytes = bytes_;
  const auto begin = std::chrono::steady_clock::now();
  f(*this);
  part->took(segment, bytes, std::chrono::steady_clock::now() - begin);
}

void running_step::finish(std::shared_ptr<const error> failure) {
  const auto self = std::move(self_);
  outgoing with_answer;
  step_fate fate{};
  {
    std::lock_guard lock(guard_);
    phase_ = phase::ended;
    arrivals_.clear();
    if (part_ && master_)
      for (std::size_t i = 0; i < outgoing_.size(); ++i)
        if (part_->destinations()[i].is_master) with_answer = std::move(outgoing_[i]);
    outgoing_.clear();
    fate = !failure                          ? step_fate::applied
           : frame_ && frame_->has_updated() ? step_fate::in_part
                                             : step_fate::unchanged;
    if (!failure) failure = unsent_;
    // The executor knows only that it was stopped; why_ says why.
    if (failure && why_ && failure->code() == errc::cancelled)
      failure = failure_of(
          [&] { throw why_->with_node(failure->node(), failure->where(), failure->device()); });
  }
  journal_->end(step_, fate);
  // Without memory, a late value may make the step once more, until the master ends it.
  (void)failure_of([&] { worker_->ended(session_, step_); });
  step_outcome o;
  o.pool = part_;
  if (failure) {
    if (frame_) part_->give_back(std::move(frame_));
    o.failure = std::move(failure);
  } else {
    o.frame = std::move(frame_);
    o.keys = std::move(with_answer.keys);
    o.values = std::move(with_answer.values);
    if (recorder_) (void)failure_of([&] { o.trace = recorder_->take(); });
  }
  master_.reset();
  auto done = std::move(done_);
  done(std::move(o));
}

}  // namespace deft::ext
