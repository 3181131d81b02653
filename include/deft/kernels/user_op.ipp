// SPDX-License-Identifier: Apache-2.0
// deft/kernels/user_op.ipp: the list of the program's own kernels.
#pragma once
#include <deft/kernels/user_op.hpp>
#include <map>

namespace deft::ext {

constinit registry<user_kernel> user_kernel::all;

user_kernel::user_kernel(const op_def& op, dtype operand, dtype result, compiled_row row)
    : op_(op), types_{operand}, result_(result), row_(row) {
  all.add(*this);
}
user_kernel::user_kernel(const op_def& op, dtype_set types, kernel_factory factory)
    : op_(op), types_(types), make_(factory) {
  all.add(*this);
}
user_kernel::user_kernel(const op_def& op, dtype_set types, value_kernel_factory factory)
    : op_(op), types_(types), make_value_(factory) {
  all.add(*this);
}

std::vector<kernel_entry> user_kernel_lines() {
  std::map<std::string_view, kernel_entry> made;
  for (const auto& k : user_kernel::all) {
    kernel_entry& e = made[k.op().name];
    e.op = k.op().name;
    e.types = e.types | k.types();
    e.make = k.make();
    e.make_value = k.make_value();
  }
  std::vector<kernel_entry> all;
  for (const auto& [name, entry] : made) all.push_back(entry);
  return all;
}

}  // namespace deft::ext
