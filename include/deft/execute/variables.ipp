// SPDX-License-Identifier: Apache-2.0
// deft/execute/variables.ipp: the table of a task's variables.
#pragma once
#include <deft/execute/variables.hpp>

namespace deft {

std::shared_ptr<variable_slot> variable_store::get(const std::string& container,
                                                   const std::string& name,
                                                   const tensor_type& type) {
  std::lock_guard lock(guard_);
  auto& slot = slots_[{container, name}];
  if (!slot) {
    slot = std::make_shared<variable_slot>();
    slot->name = name;
    slot->type = type;
  }
  if (!(slot->type == type))
    fail(errc::invalid_argument, "variable \"", name, "\" is ", slot->type, " on this task, not ",
         type);
  return slot;
}

void variable_store::clear(const std::string& container) {
  std::lock_guard lock(guard_);
  std::erase_if(slots_, [&](const auto& s) { return s.first.first == container; });
}

std::vector<std::string> variable_store::list() const {
  std::lock_guard lock(guard_);
  std::vector<std::string> names;
  for (const auto& [key, slot] : slots_) names.push_back(str(key.second, " ", slot->type));
  return names;
}

std::size_t variable_store::bytes() const {
  std::lock_guard lock(guard_);
  std::size_t total = 0;
  for (const auto& [key, slot] : slots_) {
    std::lock_guard value(slot->guard);
    total += slot->value.bytes();
  }
  return total;
}

}  // namespace deft
