// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/sideways.hpp: uses the processor's kernels.
#pragma once
#include <deft/kernels/cpu/pack.hpp>
#include <deft/kernels/spec/long_sum.hpp>
