// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/step_barrier.ipp: counting those who arrive.
#pragma once
#include <algorithm>
#include <deft/train/replicas/step_barrier.hpp>

namespace deft::ext {

step_barrier::arrival step_barrier::arrive(const participant& who, std::int64_t most) {
  bool counts = std::ranges::count(counted_, who) > 0;
  if (!counts && !has(most)) {
    counted_.push_back(who);
    counts = true;
  }
  return {round_, counts};
}

void step_barrier::withdraw(const participant& who) { std::erase(counted_, who); }

std::vector<step_barrier::participant> step_barrier::arrived() const {
  auto sorted = counted_;
  std::ranges::sort(sorted);
  return sorted;
}

void step_barrier::begin_next() {
  ++round_;
  counted_.clear();
}

}  // namespace deft::ext
