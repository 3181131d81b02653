// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/simulated/none.ipp: what there is of simulated GPUs without Thrust: a sentence.
#pragma once
#include <deft/core/error.hpp>
#include <deft/kernels/gpu/devices.hpp>

namespace deft::ext::gpu::simulated {

std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name&, int count, double) {
  fail(errc::unimplemented, count,
       " simulated GPUs are asked for, but deft was compiled without Thrust: install the CUDA "
       "Toolkit or libthrust-dev, and build deft::compiled again; a file that defines "
       "DEFT_IMPLEMENTATION needs the headers in its include path, those of the toolkit from its "
       "folder include/cccl");
}

}  // namespace deft::ext::gpu::simulated
