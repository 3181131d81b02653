// SPDX-License-Identifier: Apache-2.0
// The GPUs of a library that was compiled with neither Thrust nor nvcc.
#include <deft/kernels/gpu/gpu.ipp>
