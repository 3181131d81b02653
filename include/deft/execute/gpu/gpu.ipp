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

/// A variable of the environment that is a number from 0 to `most`; nothing if it is not set.
std::optional<int> environment(const char* name, int most) {
  const char* const given = std::getenv(name);
  if (!given || !*given) return std::nullopt;
  int number = -1;
  const char* const end = given + std::string_view(given).size();
  if (auto r = std::from_chars(given, end, number); r.ptr != end || number < 0 || number > most)
    fail(errc::invalid_argument, name, " is \"", given, "\"; expected a number from 0 to ", most);
  return number;
}

}  // namespace

std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task,
                                                          std::optional<int> simulated,
                                                          std::optional<bool> allow_tf32) {
  if (!simulated) simulated = environment("DEFT_SIMULATED_GPUS", most_simulated);
  if (!allow_tf32) allow_tf32 = environment("DEFT_ALLOW_TF32", 1).value_or(0) == 1;
  if (!simulated) return cuda::make_devices(task, *allow_tf32);
  if (*simulated == 0) return {};
  if (*simulated < 0 || *simulated > most_simulated)
    fail(errc::invalid_argument, "a task has 0 to ", most_simulated, " simulated GPUs, not ",
         *simulated);
  return gpu::simulated::make_devices(task, *simulated);
}

}  // namespace deft::gpu
