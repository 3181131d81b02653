// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/user_op.ipp: the list of the program's own kernels.
#pragma once
#include <deft/kernels/cpu/tables.hpp>
#include <deft/kernels/cpu/user_op.hpp>
#include <map>

namespace deft::ext::cpu {

constinit registry<own_kernel> own_kernel::all;

own_kernel::own_kernel(const op_def& op, dtype operand, dtype result, compiled_row row)
    : op_(op), types_{operand}, result_(result), row_(row) {
  all.add(*this);
}
own_kernel::own_kernel(const op_def& op, dtype_set types, kernel_factory factory)
    : op_(op), types_(types), make_(factory) {
  all.add(*this);
}
own_kernel::own_kernel(const op_def& op, dtype_set types, value_kernel_factory factory)
    : op_(op), types_(types), make_value_(factory) {
  all.add(*this);
}

compiled_row find_own_row(const op_def& op, dtype operand, dtype result) {
  compiled_row found;
  for (const auto& k : own_kernel::all)
    if (&k.op() == &op && k.types().has(operand) && k.result() == result &&
        k.row().span > found.span)  // packs before lanes
      found = k.row();
  return found;
}

kernel_table own_kernels() {
  static const auto& table = *new std::vector<kernel_entry>([] {
    std::map<std::string_view, kernel_entry> made;  // rows of one operation are one line
    for (const auto& k : own_kernel::all) {
      kernel_entry& e = made[k.op().name];
      e.op = k.op().name;
      e.types = e.types | k.types();
      e.make_value = k.make_value();
      e.make = k.make() ? k.make() : e.make_value ? nullptr : &make_elementwise;
    }
    std::vector<kernel_entry> all;
    for (const auto& [name, entry] : made) all.push_back(entry);
    return all;
  }());
  return table;
}

}  // namespace deft::ext::cpu
