// SPDX-License-Identifier: Apache-2.0
// deft/execute/trace_recorder.ipp: one clock for all lanes of a task.
#pragma once
#include <chrono>
#include <deft/execute/trace_recorder.hpp>

namespace deft::ext {
namespace {

template <class Clock>
std::int64_t nanoseconds_of() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

}  // namespace

trace_recorder::trace_recorder()
    : offset_(nanoseconds_of<std::chrono::system_clock>() -
              nanoseconds_of<std::chrono::steady_clock>()) {}

std::int64_t trace_recorder::now() const {
  return offset_ + nanoseconds_of<std::chrono::steady_clock>();
}

void trace_recorder::begin(const node_label& n, std::uint32_t lane) {
  const std::int64_t when = now();
  std::lock_guard lock(guard_);
  if (lane >= last_.size()) last_.resize(lane + 1, spans_.max_size());
  // A node that waited goes on.
  if (last_[lane] < spans_.size() && spans_[last_[lane]].node == &n) return;
  last_[lane] = spans_.size();
  spans_.push_back({&n, lane, when, when});
}

void trace_recorder::end(const node_label&, std::uint32_t lane) {
  const std::int64_t when = now();
  std::lock_guard lock(guard_);
  spans_[last_[lane]].end = when;
}

std::vector<trace_event> trace_recorder::take() const {
  std::lock_guard lock(guard_);
  std::vector<trace_event> events;
  events.reserve(spans_.size());
  for (const auto& s : spans_)
    events.push_back({s.node->name.str(), std::string(s.node->op->name),
                      s.node->location.known() ? str(s.node->location) : std::string(),
                      s.node->device ? to_string(*s.node->device) : std::string(), s.lane, s.begin,
                      s.end});
  return events;
}

}  // namespace deft::ext
