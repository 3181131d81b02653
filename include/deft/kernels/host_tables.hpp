// SPDX-License-Identifier: Apache-2.0
// deft/kernels/host_tables.hpp: what the executor adds to a processor's kernels.
#pragma once
#include <deft/kernels/kernel.hpp>

namespace deft::ext {

/// Sends and receives as kernels of whole values.
kernel_table transfer_kernels();
/// What a task does apart from computing: files, variables and their values, rounds of replicas.
kernel_table task_kernels();

}  // namespace deft::ext
