// SPDX-License-Identifier: Apache-2.0
// deft/execute/gpu/gpu.ipp: the GPUs of a task: how many there are, and of which kind.
#pragma once
#include <charconv>
#include <cstdlib>
#include <deft/core/text.hpp>
#include <deft/execute/gpu/compilations.ipp>
#include <deft/execute/gpu/compiled_program.ipp>
#include <deft/execute/gpu/devices.hpp>
#include <deft/execute/gpu/fault.ipp>
#include <deft/execute/gpu/nvrtc.ipp>
#include <deft/execute/gpu/source.ipp>
#include <deft/execute/gpu/toolkit_library.ipp>
#ifdef DEFT_HAS_CUDA  // by the build: the oldest architecture that nvcc compiled the kernels for
#include <deft/execute/gpu/cuda/device.ipp>
#else
#include <deft/execute/gpu/cuda/none.ipp>
#endif
#if __has_include(<thrust/for_each.h>)
#include <deft/execute/gpu/simulated/device.ipp>
#else
#include <deft/execute/gpu/simulated/none.ipp>
#endif

namespace deft::gpu {
namespace {

constexpr int most_simulated = 64;

std::optional<int> simulated_by_environment() {
  const char* const given = std::getenv("DEFT_SIMULATED_GPUS");
  if (!given || !*given) return std::nullopt;
  int count = -1;
  const char* const end = given + std::string_view(given).size();
  if (auto r = std::from_chars(given, end, count); r.ptr != end || count < 0)
    fail(errc::invalid_argument, "DEFT_SIMULATED_GPUS is \"", given,
         "\"; expected a number from 0 to ", most_simulated);
  return count;
}

}  // namespace

std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task,
                                                          std::optional<int> simulated) {
  if (!simulated) simulated = simulated_by_environment();
  if (!simulated) return cuda::make_devices(task);
  if (*simulated == 0) return {};
  if (*simulated < 0 || *simulated > most_simulated)
    fail(errc::invalid_argument, "a task has 0 to ", most_simulated, " simulated GPUs, not ",
         *simulated);
  return gpu::simulated::make_devices(task, *simulated);
}

}  // namespace deft::gpu
