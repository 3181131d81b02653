// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/cpu_linear.ipp: convolution, pooling and products of matrices, compiled next to
// cpu.ipp.
#pragma once
#include <deft/kernels/cpu/conv2d.ipp>
#include <deft/kernels/cpu/matmul.ipp>
#include <deft/kernels/cpu/pool.ipp>
