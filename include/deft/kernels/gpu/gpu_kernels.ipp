// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/gpu_kernels.ipp: the kernels of all GPUs but the elementwise ones: compiled for
// simulated GPUs by the host's compiler, and by nvcc.
#pragma once
#ifdef __CUDACC__
#include <deft/kernels/gpu/cuda/copy.ipp>
#endif
#include <deft/kernels/gpu/conv2d.ipp>
#include <deft/kernels/gpu/cross_entropy.ipp>
#include <deft/kernels/gpu/formulas.ipp>
#include <deft/kernels/gpu/index.ipp>
#include <deft/kernels/gpu/matmul.ipp>
#include <deft/kernels/gpu/order.ipp>
#include <deft/kernels/gpu/pool.ipp>
#include <deft/kernels/gpu/program.ipp>
#include <deft/kernels/gpu/random.ipp>
#include <deft/kernels/gpu/reduce.ipp>
#include <deft/kernels/gpu/scatter.ipp>
#include <deft/kernels/gpu/shapes.ipp>
#include <deft/kernels/gpu/softmax.ipp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {

std::span<const kernel_table> kernel_tables() {
  static const kernel_table tables[] = {
      table_of<this_device>(spec::conv2d_kernels() + spec::index_kernels() +
                            spec::matmul_kernels() + spec::pool_kernels() + spec::order_kernels() +
                            spec::random_kernels() + spec::reduce_kernels() +
                            spec::scatter_kernels() + spec::shape_kernels() +
                            spec::softmax_kernels()),
      elementwise_kernels(), user_kernels()};
  return tables;
}

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
