// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/cpu.ipp: the processor's device and kernels, except for those of
// cpu_elementwise.ipp and cpu_linear.ipp, which are compiled on their own.
#pragma once
#include <deft/kernels/compiled_row_registry.ipp>
#include <deft/kernels/cpu/broadcast_kernel.ipp>
#include <deft/kernels/cpu/compiled.ipp>
#include <deft/kernels/cpu/device.ipp>
#include <deft/kernels/cpu/elementwise.ipp>
#include <deft/kernels/cpu/fused_fold.ipp>
#include <deft/kernels/cpu/index.ipp>
#include <deft/kernels/cpu/interpreter.ipp>
#include <deft/kernels/cpu/kernel_base.ipp>
#include <deft/kernels/cpu/order.ipp>
#include <deft/kernels/cpu/random.ipp>
#include <deft/kernels/cpu/reduce.ipp>
#include <deft/kernels/cpu/reduction_kernels.ipp>
#include <deft/kernels/cpu/row_region.ipp>
#include <deft/kernels/cpu/scatter.ipp>
#include <deft/kernels/cpu/shapes.ipp>
#include <deft/kernels/cpu/softmax.ipp>
#include <deft/kernels/cpu/string_equality.ipp>
#include <deft/kernels/cpu/user_op.ipp>
#include <deft/kernels/cpu/whole_fold.ipp>
#include <deft/kernels/spec/row_layout.ipp>
#include <deft/kernels/team.ipp>

namespace deft::ext::cpu {

kernel_table main_kernels() {
  return table_of<this_device>(spec::index_kernels() + spec::order_kernels() +
                               spec::random_kernels() + spec::reduce_kernels() +
                               spec::scatter_kernels() + spec::shape_kernels() +
                               spec::softmax_kernels());
}

}  // namespace deft::ext::cpu

namespace deft {

template <int RegisterBytes, bool FusedMultiplyAdd>
bool deft_compiled_has_other_vector_flags_than_this_file() {
  return true;
}
template bool deft_compiled_has_other_vector_flags_than_this_file<ext::cpu::register_bytes,
                                                                  ext::cpu::fused_multiply_add>();

}  // namespace deft
