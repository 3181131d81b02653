// SPDX-License-Identifier: Apache-2.0
// deft/execute/task_kernels.hpp: kernels of what a task does apart from computing: files,
// whether its variables have values, and extents that a run computes.
#pragma once
#include <deft/execute/kernel.hpp>

namespace deft::ext {

kernel_table task_kernels();

}  // namespace deft::ext
