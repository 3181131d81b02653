// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/cpu_linear.ipp: convolution, pooling and products of matrices, compiled next to
// cpu.ipp.
#pragma once
#include <deft/kernels/cpu/conv2d.ipp>
#include <deft/kernels/cpu/matmul.ipp>
#include <deft/kernels/cpu/pool.ipp>
#include <deft/kernels/cpu/tables.hpp>

namespace deft::ext::cpu {

kernel_table linear_kernels() {
  static const auto& table = *new std::vector<kernel_entry>([] {
    const kernel_table others =
        table_of<this_device>(spec::conv2d_kernels() + spec::pool_kernels());
    std::vector<kernel_entry> made(others.begin(), others.end());
    made.push_back({op::matmul::name, matmul_dtypes, &make_product});
    return made;
  }());
  return table;
}

}  // namespace deft::ext::cpu
