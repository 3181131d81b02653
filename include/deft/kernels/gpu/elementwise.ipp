// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/elementwise.ipp: every elementwise operation alone, for every dtype that it
// takes.
#pragma once
#include <deft/kernels/gpu/compiled.hpp>
#include <deft/kernels/spec/elementwise_table.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

using element_factory = kernel_ptr (*)();

struct factory_of {
  template <class X>
  element_factory operator()() const {
    return []() -> kernel_ptr { return std::make_unique<element_kernel<X>>(); };
  }
};

kernel_ptr make_single(const node_def& n, std::span<const tensor_type> in) {
  kernel_ptr made = make_element(*n.op, in.back().type, n.outputs.at(0).type);
  if (!made) no_kernel_on(this_device::name, n, in.back().type);
  return made;
}
/// Of a variable's elements, input 0, and a value.
kernel_ptr make_update(const node_def& n, std::span<const tensor_type> in) {
  kernel_ptr made = make_element(*n.op->joins, in.back().type, in.back().type);
  if (!made) no_kernel_on(this_device::name, n, in.back().type);
  return made;
}

}  // namespace

kernel_ptr make_element(const op_def& op, dtype operand, dtype result) {
  static const auto& all = *new deft::detail::catalog_calls<element_factory>(factory_of());
  if (const element_factory* made = all.find(op.name, operand, result)) return (*made)();
  if (is_narrow(operand) || is_narrow(result))
    if (const element_factory* made =
            all.find(op.name, computing_dtype(operand), computing_dtype(result)))
      return make_widened((*made)(), &make_cast);
  if (kernel_ptr own = make_registered(kernels_of::DEFT_GPU_SYSTEM, op, operand, result))
    return own;
  const element_maker other = other_elements();
  return other ? other(op, operand, result) : nullptr;
}

kernel_ptr make_cast(dtype from, dtype to) { return make_element(record_of<op::cast>, from, to); }

element_maker& other_elements() {
  static element_maker maker = nullptr;
  return maker;
}

kernel_table elementwise_kernels() {
  static const auto& table = *new auto(
      deft::detail::elementwise_entries(&make_single, &make_program, &make_update, &make_program));
  return table;
}
kernel_table user_kernels() {
  static const auto& table = *new std::vector<kernel_entry>([] {
    std::vector<kernel_entry> made;
    for (const auto& [op, types] : registered_operations(kernels_of::DEFT_GPU_SYSTEM))
      made.push_back({op->name, types, &make_single});
    return made;
  }());
  return table;
}

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
