// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/cpu_linear.ipp: products of matrices, compiled next to cpu.ipp.
#pragma once
#include <deft/execute/cpu/matmul.ipp>
