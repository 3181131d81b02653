// SPDX-License-Identifier: Apache-2.0
// deft/execute/executor.ipp: runs of a schedule: lanes, and signals between them.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/execute/calls.hpp>
#include <deft/execute/frame_state.hpp>

namespace deft::ext::exec {
namespace {

constexpr std::uint32_t stops_between = 64;  ///< kernels that are bound, each quick to call

}  // namespace

frame_state::frame_state(const executable::compiled& c)
    : c_(c),
      values_(c),
      events_(c.events),
      bound_(c.items.size()),
      prepared_(c.computations.size()),
      value_kernel_runs_(c.value_kernels.size()),
      calling_(c.calls.size()),
      lanes_(c.lanes.size()),
      signals_(std::make_unique<std::atomic<std::uint32_t>[]>(c.signals)),
      fetched_(c.fetch_values.size()) {
  for (auto* d : c.queues) {
    steps_.push_back(d->make_step());
    if (auto& s = steps_.back())
      s->name_items([this](std::uint32_t k) { return c_.label(c_.items[k]).name; });
  }
  for (const auto& s : c.segments) segments_.emplace_back(s);
  if (c.may_park)
    for (std::uint32_t l = 0; l <= c.lanes.size(); ++l)
      gates_->push_back(std::make_shared<lane_gate>(l));
  if (!c.kernels_taken.exchange(true)) kernels_ = std::move(c.kernels);
  kernels_.resize(c.computations.size());
  for (std::size_t k = 0; k < kernels_.size(); ++k) try {
      if (!kernels_[k]) kernels_[k] = c.make_kernel(c.computations[k]);
    } catch (const error& e) {
      throw located(e, c.computations[k].item);
    }
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
    auto run = [](team_job& j) {
      auto& mine = static_cast<lane_job&>(j);
      mine.frame->resume(mine.lane);
    };
    lanes_[l].job = {{run}, this, l};
    lanes_[l].in.resize(c.most_ins + c.most_outs);  // an update's variables come first
    lanes_[l].out.resize(c.most_outs);
    lanes_[l].fresh.resize(c.most_outs);
    lanes_[l].in_order.reserve(c.most_outs);
  }
}

frame_state::~frame_state() {
  for (auto& g : *gates_) g->close();
}

bool frame_state::start(std::span<const feed_ref> feeds, const step_context& context,
                        step_driver* driver) {
  release();
  released_ = false;
  context_ = &context;
  driver_ = driver;
  values_.set_dirty(force_);
  force_ = true;  // until the run has ended well
  failed_.store(false, std::memory_order_relaxed);
  failure_ = nullptr;
  update_failed_ = false;
  for (auto& c : calling_)
    if (c) c->active = c->updated = false;
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) lanes_[l].pc = c_.lanes[l].first;
  const auto refused = failure_of([&] {
    if (values_.take_arenas()) unbind();
    for (auto& s : steps_)
      if (s) s->begin();
    check_stop();
    for (std::size_t f = 0; f < c_.feed_values.size(); ++f)
      values_.check_feed(c_.feed_values[f], feeds[f]);
    for (std::size_t f = 0; f < c_.feed_values.size(); ++f)
      set_event(c_.feed_values[f], values_.set_feed(c_.feed_values[f], feeds[f]), feeding_);
    values_.send_blocks(context.draw, feeding_);
  });
  if (refused) {
    give_up_start();
    throw error(*refused);
  }
  ++run_;
  if (!c_.may_park) {
    ready_lanes none_to_wake(lanes_);
    if (!lanes_.empty()) run_lane<false>(0, none_to_wake);
    end_run();
    if (failure_) throw error(*failure_);
    return true;
  }
  for (std::size_t s = 0; s < c_.signals; ++s) signals_[s].store(0, std::memory_order_relaxed);
  for (auto& g : *gates_) g->open(run_, *driver);
  stopped_.emplace(context.stop, interrupter{this});
  lanes_left_.store(static_cast<std::uint32_t>(lanes_.size()) + 1);
  ready_lanes ready(lanes_);
  for (auto& l : lanes_) l.drained.reset();
  for (std::uint32_t l = static_cast<std::uint32_t>(lanes_.size()); l-- > 0;)
    if (!c_.lanes[l].parallel || !offer(lanes_[l].job)) ready.push(l);
  // This call counts as a lane, so that the run does not end while it looks at the others.
  drive(ready, true);
  // What no other thread has begun by now it need not begin.
  if (c_.parallel)
    for (std::uint32_t l = 0; l < lanes_.size(); ++l)
      if (c_.lanes[l].parallel && take_back(lanes_[l].job)) ready.push(l), drive(ready, true);
  if (!lane_ended()) return false;
  if (failure_) throw error(*failure_);
  return true;
}

void frame_state::resume(std::uint32_t index) {
  step_driver* driver = driver_;
  ready_lanes ready(lanes_);
  const bool is_end = index == lanes_.size();
  if (!is_end) ready.push(index);
  if (is_end ? finish() : drive(ready)) driver->ended();
}

void frame_state::unbind() {
  std::ranges::fill(bound_, nullptr);
  for (auto& l : lanes_) l.rows.clear();
}

void frame_state::give_up_start() {
  for (auto& e : feeding_) e->synchronize();
  feeding_.clear();
  values_.give_arenas();
}

/// `starting`: the caller ends a lane of its own next, with which what this one sends may leave.
bool frame_state::drive(ready_lanes& ready, bool starting) {
  while (!ready.empty()) {
    if (!run_lane<true>(ready.pop(), ready)) continue;
    if (starting && ready.empty())
      --lanes_left_;
    else if (lane_ended())
      return true;
  }
  return false;
}

template <bool MayPark>
bool frame_state::run_lane(std::uint32_t l, ready_lanes& ready) {
  bool ended = true;
  if (const auto why = failure_of([&] { ended = run_items<MayPark>(l, ready); }))
    note_failure(*why, lanes_[l].pc);
  return ended;
}

template <bool MayPark>
bool frame_state::run_items(std::uint32_t l, ready_lanes& ready) {
  lane& me = lanes_[l];
  const std::uint32_t end = c_.lanes[l].end;
  const bool observed = context_->observer != nullptr, calls = MayPark && !c_.calls.empty();
  // Parks the lane at its item; not if what that waits for has come meanwhile.
  const auto has_parked = [&] {
    if (park(l)) return true;
    --me.pc;
    return false;
  };
  for (; me.pc < end; ++me.pc) {
    if (calls && !functions_ended(l)) {
      if (has_parked()) return false;
      continue;
    }
    if (MayPark && failed_.load(std::memory_order_relaxed)) return true;
    if (const bound_call* b = bound_[me.pc]; b && !observed) {
      if (me.pc % stops_between == 0) check_stop();
      b->run_all();
      continue;
    }
    const item& i = c_.items[me.pc];
    check_stop();
    bool is_over = !MayPark || !i.input_in_flight || inputs_ready(i, l);
    if (is_over) switch (i.what) {
        case action::signal:
          give_signal(i.number, ready);
          continue;
        case action::wait:
          if (!wait_signal(i.number, l)) return false;
          continue;
        case action::drain:
          is_over = is_drained(i, l);
          break;
        case action::run_value_kernel:
          is_over = run_value_kernel(i, l);
          break;
        case action::call:
          is_over = call(i, l);
          break;
        default:
          if (MayPark && i.begins_segment && !observed) {
            run_segment(l);
            --me.pc;  // its last item
            continue;
          }
          observation seen(context_->observer, c_.label(i), l);
          run_item(i, me.pc, l);
      }
    if (!is_over) {
      if (has_parked()) return false;
      continue;
    }
    for (std::uint32_t r = 0; r < i.releases; ++r) values_.drop(c_.releases[i.first_release + r]);
  }
  if (!MayPark) check_stop();
  return true;
}

bool frame_state::inputs_ready(const item& i, std::uint32_t l) {
  if (i.what == action::copy || i.what == action::fetch || !i.on_host) return true;
  for (std::uint32_t a = 0; a < i.ins; ++a) {
    const event_ptr& e = event_of(c_.inputs[i.first_in + a]);
    if (!e || e->done()) continue;
    call_back(e, l);
    return false;
  }
  look_at_devices();
  return true;
}

void frame_state::look_at_devices() {
  std::uint32_t item = 0;
  for (auto& s : steps_)
    if (s)
      if (auto e = s->failure(item)) throw located(*e, item);
}

bool frame_state::is_drained(const item& i, std::uint32_t l) {
  event_ptr& e = lanes_[l].drained;
  if (!e) e = c_.device(i).record();
  if (e && !e->done()) {
    call_back(e, l);
    return false;
  }
  e.reset();
  look_at_devices();
  return true;
}

void frame_state::call_back(const event_ptr& e, std::uint32_t l) {
  gate(l)->listen();
  e->when_done([w = waker(gate(l), run_)] { w(); });
}

bool frame_state::park(std::uint32_t l) {
  if (context_->exchange) context_->exchange->flush(false);
  return gate(l)->park();
}

bool frame_state::wait_signal(std::uint32_t s, std::uint32_t l) {
  constexpr std::uint32_t given = 1;
  std::uint32_t now = 0;
  if (signals_[s].load(std::memory_order_acquire) == given) return true;
  if (context_->exchange) context_->exchange->flush(false);
  // Once the lane is known to wait, another thread may have it.
  ++lanes_[l].pc;
  if (signals_[s].compare_exchange_strong(now, l + 2, std::memory_order_acq_rel)) return false;
  --lanes_[l].pc;
  return true;
}

void frame_state::give_signal(std::uint32_t s, ready_lanes& ready) {
  const std::uint32_t before = signals_[s].exchange(1, std::memory_order_acq_rel);
  if (before < 2) return;
  const std::uint32_t l = before - 2;
  // What only starts work of a device does not wait until this lane has come to its end.
  if (c_.lanes[l].quick) {
    if (run_lane<true>(l, ready)) lane_ended();
  } else if (!c_.parallel ||
             (!driver_->wake_idle(l) && !(c_.lanes[l].parallel && offer(lanes_[l].job)))) {
    ready.push(l);
  }
}

bool frame_state::lane_ended() {
  // Where devices still work, values do not wait for the end.
  if (context_->exchange)
    context_->exchange->flush(c_.queues.empty() &&
                              lanes_left_.load(std::memory_order_relaxed) == 1);
  return lanes_left_.fetch_sub(1, std::memory_order_acq_rel) == 1 && finish();
}

const event_ptr& frame_state::event_of(std::uint32_t v) const {
  static const event_ptr none_there;
  const std::uint32_t e = c_.values[c_.values[v].root].event;
  return e == none ? none_there : events_[e];
}

device_step* frame_state::step_on(const item& i) const {
  auto at = std::ranges::find(c_.queues, &c_.device(i));
  return at == c_.queues.end() ? nullptr : steps_[at - c_.queues.begin()].get();
}

const any_array& frame_state::peek(std::size_t i) {
  any_array& f = fetched_[i];
  const std::uint32_t v = c_.fetch_values[i];
  if (!f.valid() && v != none) {
    f = values_.as_array(v);
    if (!f.storage() || f.storage().is_borrowed()) f = f.clone();
  }
  return f;
}

void frame_state::release() {
  if (std::exchange(released_, true)) return;
  for (auto& f : fetched_)
    if (f.valid()) f = any_array();
  for (auto& c : calling_)
    if (c) c->release();
  values_.release();
}

}  // namespace deft::ext::exec

namespace deft::ext {

executable::frame::frame(const compiled& c) : state_(std::make_unique<exec::frame_state>(c)) {}
executable::frame::~frame() = default;
void executable::frame::run(std::span<const feed_ref> feeds, const step_context& context) {
  if (!state_->may_park()) {
    state_->start(feeds, context, nullptr);
    return;
  }
  exec::blocking_driver driver(state_->lanes());
  if (state_->start(feeds, context, &driver)) return;
  driver.drive(*this);
  if (auto e = state_->failure()) throw error(*e);
}
bool executable::frame::start(std::span<const feed_ref> feeds, const step_context& context,
                              step_driver& driver) {
  return state_->start(feeds, context, &driver);
}
void executable::frame::resume(std::uint32_t lane) { state_->resume(lane); }
std::shared_ptr<const error> executable::frame::failure() const { return state_->failure(); }
bool executable::frame::has_updated() const { return state_->has_updated(); }
const any_array& executable::frame::peek(std::size_t i) { return state_->peek(i); }
any_array executable::frame::take(std::size_t i) { return state_->take(i); }
void executable::frame::release() { state_->release(); }

}  // namespace deft::ext
