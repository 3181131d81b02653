// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/cpu_linear.ipp: convolution, pooling and products of matrices, compiled next to
// cpu.ipp.
#pragma once
#include <deft/execute/cpu/conv2d.ipp>
#include <deft/execute/cpu/matmul.ipp>
#include <deft/execute/cpu/pool.ipp>
