// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/gpu_elementwise.ipp: the elementwise kernels of all GPUs, compiled on their own.
#pragma once
#include <deft/kernels/gpu/elementwise.ipp>
