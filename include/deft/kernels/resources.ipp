// SPDX-License-Identifier: Apache-2.0
// deft/kernels/resources.ipp: the table of a task's resources.
#pragma once
#include <algorithm>
#include <atomic>
#include <deft/core/hash.hpp>
#include <deft/kernels/resources.hpp>
#include <functional>

namespace deft::ext {

void resource_store::refuse(const resource_key& key) {
  fail(errc::invalid_argument, "\"", key.name, "\" is a ", key.kind,
       " of another type on this task");
}

/// With the lock held. Takes constant time for each resource that is made.
void resource_store::forget_unused(const std::shared_ptr<resource>& except) {
  std::erase_if(resources_, [&](const auto& entry) {
    const auto& r = entry.second;
    return r != except && r.use_count() == 1 && r->empty();
  });
  forget_at_ = std::max(forget_at_, 2 * resources_.size());
}

void resource_store::clear(const std::string& container) {
  std::vector<std::shared_ptr<resource>> emptied;
  {
    std::lock_guard lock(guard_);
    std::erase_if(resources_, [&](auto& entry) {
      if (entry.first.container != container) return false;
      const bool held = entry.second.use_count() > 1;
      emptied.push_back(entry.second);
      return !held;
    });
  }
  for (const auto& r : emptied) r->clear();  // which may wake those who wait for it
}

std::vector<std::string> resource_store::list() const {
  std::lock_guard lock(guard_);
  std::vector<std::string> names;
  for (const auto& [key, r] : resources_) names.push_back(str(key.name, " ", r->describe()));
  std::ranges::sort(names);
  return names;
}

std::size_t resource_store::bytes() const {
  std::lock_guard lock(guard_);
  std::size_t total = 0;
  for (const auto& [key, r] : resources_) total += r->bytes();
  return total;
}

std::string resource_store::largest(placement device) const {
  std::vector<std::pair<std::size_t, std::string>> all;
  {
    std::lock_guard lock(guard_);
    for (const auto& [key, r] : resources_)
      if (r->place() == device) all.emplace_back(r->bytes(), key.name + " " + r->describe());
  }
  return largest_of(std::move(all));
}

std::string largest_of(std::vector<std::pair<std::size_t, std::string>> all) {
  constexpr std::size_t most = 5;
  if (all.empty()) return "none";
  std::ranges::sort(all, std::greater<>());
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < most; ++i)
    text += str(i ? ", " : "", all[i].second, " of ", all[i].first, " bytes");
  if (all.size() > most) text += str(", and ", all.size() - most, " smaller ones");
  return text;
}

void variable_slot::clear() {
  any_array dropped;  // freed without the lock
  std::lock_guard lock(guard);
  dropped = std::exchange(value, any_array());
  device = nullptr;
  restoring = false;
}
bool variable_slot::empty() const {
  std::lock_guard lock(guard);
  return !value.valid();
}
std::size_t variable_slot::bytes() const {
  std::lock_guard lock(guard);
  return value.bytes();
}
std::string variable_slot::describe() const {
  std::lock_guard lock(guard);
  return to_string(type);
}
placement variable_slot::place() const {
  std::lock_guard lock(guard);
  return device;
}

std::int64_t variable_slot::next_generation() {
  static std::atomic<std::uint64_t> made{0};
  const std::uint64_t number = ++made;
  // The hash has a random seed of the process.
  return static_cast<std::int64_t>(hash_bytes(&number, sizeof number) >> 1 | 1);
}

void locked_variables::sort(std::vector<variable_slot*>& all) {
  std::ranges::sort(all, std::less<>());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

void variable_slot::change(const tensor_type& t) {
  if (value.valid())
    fail(errc::invalid_argument, "variable \"", name, "\" is ", type, " on this task, not ", t);
  type = t;
}

std::shared_ptr<variable_slot> find_variable(resource_store& store, const resource_key& key,
                                             const tensor_type& type) {
  auto slot = store.get<variable_slot>(
      key, [&] { return std::make_shared<variable_slot>(key.name, type); });
  std::lock_guard lock(slot->guard);
  if (slot->type != type) slot->change(type);
  return slot;
}

}  // namespace deft::ext
