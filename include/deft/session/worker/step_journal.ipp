// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/step_journal.ipp: steps under way, and the last that have ended.
#pragma once
#include <algorithm>
#include <deft/session/worker/step_journal.hpp>
#include <new>

namespace deft::ext {

bool step_journal::begin(std::uint64_t step) {
  std::lock_guard lock(guard_);
  if (find(step) != under_way_.end() || of(step) != step_fate::unknown) return false;
  under_way_.push_back({step, {}});
  return true;
}

void step_journal::end(std::uint64_t step, step_fate f) {
  std::vector<callback> asked;
  {
    std::lock_guard lock(guard_);
    if (const auto at = find(step); at != under_way_.end()) {
      asked = std::move(at->asked);
      std::swap(*at, under_way_.back());
      under_way_.pop_back();
    }
    try {
      note(step, f);
    } catch (const std::bad_alloc&) {
      forgotten_ = std::max(forgotten_, step);  // its fate is unknown
    }
  }
  for (const auto& then : asked) then(f);
}

void step_journal::ask(std::uint64_t step, callback then) {
  step_fate known{};
  {
    std::lock_guard lock(guard_);
    if (const auto at = find(step); at != under_way_.end())
      return at->asked.push_back(std::move(then));
    known = of(step);
    if (known == step_fate::unknown && step > forgotten_) note(step, known = step_fate::unchanged);
  }
  then(known);
}

std::vector<step_journal::open_step>::iterator step_journal::find(std::uint64_t step) {
  return std::ranges::find(under_way_, step, &open_step::number);
}

step_fate step_journal::of(std::uint64_t step) const {
  if (step > highest_) return step_fate::unknown;  // a new step, the usual case
  const auto at = std::find_if(last_.rbegin(), last_.rend(),
                               [&](const auto& entry) { return entry.first == step; });
  return at == last_.rend() ? step_fate::unknown : at->second;
}

void step_journal::note(std::uint64_t step, step_fate f) {
  last_.emplace_back(step, f);
  highest_ = std::max(highest_, step);
  if (last_.size() <= most) return;
  forgotten_ = std::max(forgotten_, last_.front().first);
  last_.pop_front();
}

}  // namespace deft::ext
