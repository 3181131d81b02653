// SPDX-License-Identifier: Apache-2.0
// deft/kernels/host_tables.hpp: the kernels of whole values that other folders add to a
// processor's.
#pragma once
#include <deft/kernels/kernel.hpp>

namespace deft::ext {

/// Sends and receives (execute/).
kernel_table transfer_kernels();
/// What a task does apart from computing: files, variables and their values (execute/).
kernel_table task_kernels();
/// Rounds of replicas (train/replicas/).
kernel_table replica_kernels();

/// All of them. A folder above kernels/ adds its own here, and their operations, if they are not in
/// the catalog, by add_operations in the function of its table. Tables do not register themselves:
/// of a static library the linker takes only what something refers to, and a task must know all
/// of them, whatever its program uses.
inline constexpr kernel_table (*host_tables[])() = {&transfer_kernels, &task_kernels,
                                                    &replica_kernels};

}  // namespace deft::ext
