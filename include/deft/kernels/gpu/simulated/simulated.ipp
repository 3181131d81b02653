// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/simulated/simulated.ipp: umbrella of simulated GPUs, a library of their own.
#pragma once
#include <deft/kernels/gpu/simulated/device.ipp>

namespace deft::ext::gpu::simulated {
namespace {

[[maybe_unused]] const bool linked = (device_factory() = &make_devices, true);

}  // namespace
}  // namespace deft::ext::gpu::simulated
