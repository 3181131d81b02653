// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/cpu.ipp: the processor's device and kernels, except for those of
// cpu_elementwise.ipp and cpu_linear.ipp, which are compiled on their own.
#pragma once
#include <deft/execute/cpu/broadcast_kernel.ipp>
#include <deft/execute/cpu/device.ipp>
#include <deft/execute/cpu/elementwise.ipp>
#include <deft/execute/cpu/folds.ipp>
#include <deft/execute/cpu/index.ipp>
#include <deft/execute/cpu/interpreter.ipp>
#include <deft/execute/cpu/kernel_base.ipp>
#include <deft/execute/cpu/own.ipp>
#include <deft/execute/cpu/random.ipp>
#include <deft/execute/cpu/reduce.ipp>
#include <deft/execute/cpu/row_region.ipp>
#include <deft/execute/cpu/shapes.ipp>
#include <deft/execute/cpu/softmax.ipp>
#include <deft/execute/cpu/whole_fold.ipp>
#include <deft/execute/fused.ipp>
#include <deft/execute/layout.ipp>
#include <deft/execute/team.ipp>

namespace deft {

template <int RegisterBytes, bool FusedMultiplyAdd>
bool deft_compiled_has_other_vector_flags_than_this_file() {
  return true;
}
template bool deft_compiled_has_other_vector_flags_than_this_file<ext::cpu::register_bytes,
                                                                  ext::cpu::fused_multiply_add>();

}  // namespace deft
