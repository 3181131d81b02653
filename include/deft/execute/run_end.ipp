// SPDX-License-Identifier: Apache-2.0
// deft/execute/run_end.ipp: how a run ends: waiting for devices, errors, and what was updated.
#pragma once
#include <algorithm>
#include <chrono>
#include <deft/core/failure.hpp>
#include <deft/execute/calls.hpp>
#include <deft/execute/frame_state.hpp>
#include <thread>

namespace deft::ext::exec {
bool frame_state::finish() {
  const auto end = static_cast<std::uint32_t>(lanes_.size());
  struct countdown {
    countdown(std::size_t n, waker w) : left(n), last(std::move(w)) {}
    std::atomic<std::size_t> left;
    waker last;
  };
  auto gather = [this](std::vector<event_ptr>& events) {
    for (auto& e : events) ends_.push_back(std::move(e));
    events.clear();
  };
  gather(feeding_);
  for (auto& l : lanes_) gather(l.pending);
  if (!std::exchange(ends_known_, true))
    for (auto* d : c_.queues)
      if (auto e = d->record()) ends_.push_back(std::move(e));
  // A thread that sleeps is late by some 60 us, so only those sleep to whom that is little.
  const auto awake_until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  for (;;) {
    std::erase_if(ends_, [](const event_ptr& e) { return e->done(); });
    if (ends_.empty()) break;
    gate(end)->listen();
    if (!failed_ && context_->stop.stop_requested()) stop_devices();
    if (driver_->may_wait() && std::chrono::steady_clock::now() < awake_until) {
      std::this_thread::yield();
      continue;
    }
    const auto unheard = failure_of([&] {
      auto all = std::make_shared<countdown>(ends_.size(), waker(gate(end), run_));
      for (const auto& e : ends_)
        e->when_done([all] {
          if (all->left.fetch_sub(1, std::memory_order_acq_rel) == 1) all->last();
        });
    });
    if (unheard)  // there is no memory for a call back
      std::this_thread::yield();
    else if (gate(end)->park())
      return false;
  }
  ends_known_ = false;
  end_run();
  return true;
}

/// The run is to end while only devices are at work for it.
void frame_state::stop_devices() {
  if (auto why = failure_of([&] { check_stop(); })) end_with(std::move(why));
  for (auto& s : steps_)
    if (s) s->stop();
}

void frame_state::end_run() {
  stopped_.reset();
  for (auto& g : *gates_) g->close();
  // An internal error may follow from one of a device, which names the item that caused both.
  if (!failed_.load(std::memory_order_relaxed) || failure_->code() == errc::internal)
    if (auto why = failure_of([&] { look_at_devices(); })) end_with(std::move(why));
  if (!c_.queues.empty()) restore_variables();
  for (auto& e : events_) e.reset();
  values_.give_arenas();
  force_ = failed_.load(std::memory_order_relaxed);
  // What a lane was woken for and did not take, another run gets.
  for (auto& p : value_kernel_runs_) {
    p.ticket.leave();
    if (p.state.has_value()) p.state.reset();
  }
}

void frame_state::end_with(std::shared_ptr<const error> why) {
  failure_ = std::move(why);
  failed_ = true;
}

void frame_state::note_failure(const error& e, std::uint32_t item) {
  {
    std::lock_guard lock(failure_guard_);
    if (!failure_) failure_ = failure_of([&] { throw located(e, item); });
    // A run that is stopped is so before the item.
    if (e.code() != errc::cancelled && item < c_.items.size()) update_failed_ |= is_update(item);
  }
  failed_.store(true, std::memory_order_release);
  for (auto& s : steps_)
    if (s) s->stop();
  if (!c_.may_park) return;
  for (std::uint32_t s = 0; s < c_.signals; ++s)
    if (const auto before = signals_[s].exchange(1, std::memory_order_acq_rel); before >= 2)
      driver_->wake(before - 2);
  interrupter{this}();
}

bool frame_state::is_update(std::uint32_t k) const {
  return c_.items[k].what == action::assign || c_.items[k].what == action::update;
}

bool frame_state::has_updated() const {
  // A lane is at an item that has not run; but a segment at the last one that it has started.
  const auto has_begun = [this](std::uint32_t k, std::uint32_t pc) {
    const device_step* const queued = step_on(c_.items[k]);
    return queued ? queued->has_updated() : k < pc;
  };
  for (const auto& c : calling_)
    if (c && c->updated) return true;
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
    const std::uint32_t pc = lanes_[l].pc, end = std::min(c_.lanes[l].end, pc + 1);
    for (std::uint32_t k = c_.lanes[l].first; k < end; ++k)
      if (is_update(k) && has_begun(k, pc)) return true;
  }
  return update_failed_;
}

void frame_state::restore_variables() {
  const bool failed = failed_.load(std::memory_order_relaxed);
  for (auto& l : lanes_) {
    for (auto r = l.variables.rbegin(); failed && r != l.variables.rend(); ++r) {
      std::lock_guard lock(r->variable->guard);
      if (any_array& now = r->variable->value; now.valid() && now.raw() == r->now)
        std::swap(now, r->before);
    }
    l.variables.clear();
  }
}

error frame_values::explained(const error& e, device_runtime& d) const {
  if (e.code() != errc::resource_exhausted || !d.asynchronous() || !c_.store) return e;
  std::vector<std::pair<std::size_t, std::string>> values;
  for (std::uint32_t v = 0; v < c_.values.size(); ++v) {
    const value_info& i = c_.values[v];
    const tensor_type t = type_of(v);
    if (i.root == v && i.where != storage::shared && &c_.device(i).space() == &d.space() &&
        t.shape.is_static())
      values.emplace_back(bytes_of(t.type, t.shape), str(c_.labels[i.node].name, " ", t));
  }
  return e.with_message(
      str(e.message(), "; the variables there: ", c_.store->largest(d.info().name),
          "; the values of this step there, not all at a time: ", largest_of(std::move(values))));
}

error frame_state::located(const error& e, std::uint32_t item) const {
  if (item >= c_.items.size() || !e.node().empty()) return e;
  const exec::item& i = c_.items[item];
  const node_label& n = c_.label(i);
  return values_.explained(e.with_node(n.name, n.location, to_string(*c_.device(i).info().name)),
                           c_.device(i));
}

}  // namespace deft::ext::exec
