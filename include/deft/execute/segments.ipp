// SPDX-License-Identifier: Apache-2.0
// deft/execute/segments.ipp: kernels that are launched together.
#pragma once
#include <algorithm>
#include <deft/execute/frame_state.hpp>
#include <deft/execute/segments.hpp>
#include <functional>

namespace deft::ext::exec {
namespace {

/// Kernels that are worth a graph.
constexpr std::size_t fewest_launches = 3;

bool is_launch(const item& i) { return i.what == action::run || i.what == action::update; }
bool belongs(const executable::compiled& c, const item& i, std::uint16_t device) {
  return i.device == device && c.devices[device]->asynchronous() &&
         (is_launch(i) || i.what == action::read || i.what == action::alias);
}

segment_info segment_of(const executable::compiled& c, std::uint32_t first, std::uint32_t end) {
  segment_info s{first, end, 0, 0, {}};
  for (std::uint32_t k = first; k < end; ++k) {
    const item& i = c.items[k];
    const bool update = i.what == action::update;
    if (is_launch(i)) ++s.launches, s.addresses += i.ins + i.outs + (update ? i.outs : 0);
    if (update || i.what == action::read)
      for (std::uint32_t o = 0; o < i.outs; ++o)
        s.variables.push_back(c.variables[i.variable + o].get());
  }
  locked_variables::sort(s.variables);
  return s;
}

}  // namespace

void plan_segments(executable::compiled& c) {
  for (const lane_info& l : c.lanes)
    for (std::uint32_t k = l.first; k < l.end;) {
      const std::uint32_t first = k;
      while (k < l.end && belongs(c, c.items[k], c.items[first].device)) ++k;
      if (k == first) ++k;
      segment_info s = segment_of(c, first, k);
      if (k - first < fewest_launches || s.launches < fewest_launches) continue;
      c.items[first].begins_segment = true;
      c.segments.push_back(std::move(s));
    }
}

void segment_launches::begin(device_runtime& device, device_step* step,
                             const std::stop_token& stop) {
  device_ = &device, step_ = step, stop_ = &stop;
  gathered_.clear();
  gathered_.reserve(info_.launches);
  key_.clear();
  key_.reserve(own_words + info_.addresses);  // requests point into it
  if (scratch_bytes_) scratch_ = device.arenas().take(scratch_bytes_);
  key_ = {step ? step->block_address() : nullptr, scratch_.data(), nullptr,
          reinterpret_cast<const void*>(device.code_version())};
  alike_ = true;
  last_ = info_.first;
}

void segment_launches::add(const launch_request& r) {
  key_[2] = r.call.draw_word ? r.call.draw_word : key_[2];
  gathered_.push_back(r);
  kernel_call& call = gathered_.back().call;
  const void** const in = key_.data() + key_.size();
  key_.insert(key_.end(), r.call.in, r.call.in + r.ins);
  call.in = in;
  void** const out = const_cast<void**>(key_.data() + key_.size());
  key_.insert(key_.end(), r.call.out, r.call.out + r.outs);
  call.out = out;
}

void* segment_launches::scratch(std::size_t bytes) {
  if (scratch_.capacity() < bytes) {
    scratch_bytes_ = bytes;
    if (scratch_) hold(std::move(scratch_));
    scratch_ = device_->arenas().take(bytes);
    alike_ = false;  // later runs have one for all
  }
  return scratch_.data();
}

bool segment_launches::is_locked(const void* elements) const {
  return std::ranges::any_of(info_.variables, [&](const variable_slot* v) {
    return v->value.valid() && v->value.raw() == elements;
  });
}

void segment_launches::launch_gathered() {
  for (const auto& r : gathered_) {
    if (stop_->stop_requested()) throw error(errc::cancelled, "the step was cancelled");
    last_ = r.item;
    device_->launch(r, step_);
  }
  gathered_.clear();
}
void segment_launches::interrupt() {
  alike_ = false;
  launch_gathered();
}

segment_launches::known_run* segment_launches::find_known() {
  auto at = std::ranges::find(known_, key_, &known_run::key);
  if (at != known_.end()) return &*at;
  if (known_.size() < most_known)
    known_.emplace_back();
  else
    std::ranges::iter_swap(std::ranges::min_element(known_, {}, &known_run::used),
                           std::prev(known_.end()));
  known_.back() = {key_, nullptr, ++runs_};
  return nullptr;
}

void segment_launches::start(bool prepared_anew) {
  if (prepared_anew) known_.clear();
  known_run* const known = alike_ && captures_ ? find_known() : nullptr;
  if (known && !known->graph) {
    known->graph = device_->capture(gathered_, step_);
    captures_ = known->graph != nullptr;
  }
  if (!known || !known->graph) return launch_gathered();
  known->used = ++runs_;
  device_->launch(*known->graph, step_);
  gathered_.clear();
}

void segment_launches::end() {
  if (scratch_) device_->arenas().give(std::move(scratch_));
  scratch_.reset();
  held_.clear();
}

void frame_state::run_segment(std::uint32_t l) {
  lane& me = lanes_[l];
  const auto at = std::ranges::lower_bound(c_.segments, me.pc, {}, &segment_info::first);
  segment_launches& launches = segments_[static_cast<std::size_t>(at - c_.segments.begin())];
  const item& first = c_.items[me.pc];
  struct opened {
    lane& in;
    ~opened() { std::exchange(in.open, nullptr)->end(); }
  };
  // No run of others comes between what these items see of variables and what they launch.
  const locked_variables lock(at->variables);
  me.open = &launches;
  const opened until_end{me};
  launches.begin(c_.device(first), step_on(first), context_->stop);
  for (; me.pc < at->end; ++me.pc) {
    const item& i = c_.items[me.pc];
    run_item(i, me.pc, l);
    for (std::uint32_t r = 0; r < i.releases; ++r) {
      // A variable holds its elements until its lock is gone, and is to see that nobody else does.
      const std::uint32_t v = c_.releases[i.first_release + r];
      if (buffer b = values_.take(v); b && !launches.is_locked(b.data()))
        launches.hold(std::move(b));
    }
  }
  try {
    launches.start(values_.dirty());
  } catch (...) {
    me.pc = launches.last();
    throw;
  }
}

}  // namespace deft::ext::exec
