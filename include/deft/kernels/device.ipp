// SPDX-License-Identifier: Apache-2.0
// deft/kernels/device.ipp: what devices of all kinds share.
#pragma once
#include <deft/kernels/device.hpp>

namespace deft::ext {

kernel_index::kernel_index(std::span<const kernel_table> tables) {
  for (const auto& table : tables)
    for (const auto& entry : table) by_name_.emplace(entry.op, &entry);
}
const kernel_entry* kernel_index::find(std::string_view op) const {
  auto at = by_name_.find(op);
  return at == by_name_.end() ? nullptr : at->second;
}

std::shared_ptr<const kernel_set> announce(std::span<const kernel_table> tables) {
  auto set = std::make_shared<kernel_set>();
  for (const auto& table : tables)
    for (const auto& entry : table) set->add(entry.op, entry.types);
  // What the executor does without a kernel.
  for (const op_def* d : known_ops())
    if (d->role != op_role::compute && d->role != op_role::update)
      set->add(d->name, all_dtypes | dtype_set{dtype::none});
  return set;
}

void synchronize(device_runtime& d) {
  if (auto e = d.record()) e->synchronize();
}

}  // namespace deft::ext
