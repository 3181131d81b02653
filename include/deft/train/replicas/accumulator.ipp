// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/accumulator.ipp: gradients by contributor.
#pragma once
#include <algorithm>
#include <deft/train/replicas/accumulator.hpp>

namespace deft::ext {

accumulator::membership accumulator::join(std::uint64_t contributor) {
  membership held;
  std::lock_guard lock(guard_);
  entry& e = entries_[contributor];
  if ((held = e.owner.lock())) return held;
  e.owner = held = std::make_shared<const std::uint64_t>(contributor);
  return held;
}

void accumulator::apply(const membership& from, std::uint64_t step,
                        std::vector<any_array> gradient) {
  std::lock_guard lock(guard_);
  entry& e = entries_[*from];
  if (!e.gradient.empty() && step < e.step) return;
  e.step = step;
  e.gradient.swap(gradient);  // the old one is freed without the lock
}

std::optional<std::vector<std::vector<any_array>>> accumulator::take(
    std::span<const std::uint64_t> contributors) {
  std::vector<std::vector<any_array>> all(contributors.size());
  std::vector<std::vector<any_array>> dropped;  // freed without the lock
  std::lock_guard lock(guard_);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto e = entries_.find(contributors[i]);
    if (e == entries_.end() || e->second.gradient.empty()) {
      while (i-- > 0) entries_[contributors[i]].gradient.swap(all[i]);
      return {};
    }
    all[i].swap(e->second.gradient);
  }
  std::erase_if(entries_, [&](auto& e) {
    if (!e.second.owner.expired()) return false;
    dropped.push_back(std::move(e.second.gradient));
    return true;
  });
  return all;
}

void accumulator::clear() {
  std::lock_guard lock(guard_);
  for (auto& [contributor, e] : entries_) e.gradient.clear();
}
bool accumulator::empty() const {
  std::lock_guard lock(guard_);
  return std::ranges::all_of(entries_, [](const auto& e) { return e.second.gradient.empty(); });
}
std::size_t accumulator::bytes() const {
  std::lock_guard lock(guard_);
  std::size_t total = 0;
  for (const auto& [contributor, e] : entries_)
    for (const auto& a : e.gradient) total += a.bytes();
  return total;
}
std::string accumulator::describe() const {
  std::lock_guard lock(guard_);
  const auto there =
      std::ranges::count_if(entries_, [](const auto& e) { return !e.second.gradient.empty(); });
  return str(there, " gradients");
}

}  // namespace deft::ext
