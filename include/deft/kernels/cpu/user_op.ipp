// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/user_op.ipp: the rows and the table of the program's own kernels.
#pragma once
#include <deft/kernels/cpu/tables.hpp>
#include <deft/kernels/cpu/user_op.hpp>

namespace deft::ext::cpu {

compiled_row find_user_row(const op_def& op, dtype operand, dtype result) {
  compiled_row found;
  for (const auto& k : user_kernel::all)
    if (&k.op() == &op && k.types().has(operand) && k.result() == result &&
        k.row().span > found.span)  // packs before lanes
      found = k.row();
  return found;
}

kernel_table user_kernels() {
  static const auto& table = *new std::vector<kernel_entry>([] {
    auto all = user_kernel_lines();
    for (auto& e : all)
      if (!e.make && !e.make_value) e.make = &make_elementwise;
    return all;
  }());
  return table;
}

}  // namespace deft::ext::cpu
