// SPDX-License-Identifier: Apache-2.0
// deft/execute/task_kernels.hpp: kernels of what a task does apart from computing: files, and
// whether its variables have values.
#pragma once
#include <deft/execute/kernel.hpp>

namespace deft {

kernel_table task_kernels();

}  // namespace deft
