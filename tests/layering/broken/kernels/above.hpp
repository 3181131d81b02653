// SPDX-License-Identifier: Apache-2.0
// deft/kernels/above.hpp: would bring the processor's kernels to GPUs.
#pragma once
#include <deft/kernels/cpu/pack.hpp>
