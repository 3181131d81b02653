// SPDX-License-Identifier: Apache-2.0
// deft/execute/transfers.hpp: sends and receives as kernels of whole values.
#pragma once
#include <deft/execute/kernel.hpp>

namespace deft::ext {

kernel_table transfer_kernels();

}  // namespace deft::ext
