// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/gpu.ipp: the GPUs of a task: how many there are, and of which kind.
#pragma once
#include <charconv>
#include <cstdlib>
#include <deft/core/log.hpp>
#include <deft/core/text.hpp>
#include <deft/kernels/gpu/compilations.ipp>
#include <deft/kernels/gpu/compiled_program.ipp>
#include <deft/kernels/gpu/cuda_codegen.ipp>
#include <deft/kernels/gpu/cuda_row_codegen.ipp>
#include <deft/kernels/gpu/devices.hpp>
#include <deft/kernels/gpu/fault.ipp>
#include <deft/kernels/gpu/nvrtc.ipp>
#include <deft/kernels/gpu/registered.ipp>
#include <deft/kernels/gpu/toolkit_library.ipp>
#ifdef DEFT_HAS_CUDA  // by the build: the oldest architecture that nvcc compiled the kernels for
#include <deft/kernels/gpu/cuda/device.ipp>
#else
#include <deft/kernels/gpu/cuda/none.ipp>
#endif

namespace deft::ext::gpu {

simulated::factory& simulated::device_factory() {
  static factory linked = nullptr;
  return linked;
}

namespace {

std::vector<std::unique_ptr<device_runtime>> make_simulated(const device_name& task, int count,
                                                            double memory_limit) {
  if (const simulated::factory make = simulated::device_factory())
    return make(task, count, memory_limit);
  fail(errc::unimplemented, count,
       " simulated GPUs are asked for, and this program does not link them: in CMake, link "
       "deft::simulated_gpus, which needs Thrust, from the CUDA Toolkit or libthrust-dev; with "
       "DEFT_IMPLEMENTATION, have Thrust's headers in the include path (the toolkit's are in its "
       "folder include/cccl)");
}

/// What a variable of the environment says, if it is set: a number that is `valid`.
template <class T, class F>
std::optional<T> environment(const char* name, const char* expected, F valid) {
  const char* const given = std::getenv(name);
  if (!given || !*given) return std::nullopt;
  T number{};
  const char* const end = given + std::string_view(given).size();
  if (const auto r = std::from_chars(given, end, number);
      r.ec != std::errc() || r.ptr != end || !valid(number))
    fail(errc::invalid_argument, name, " is \"", given, "\"; expected ", expected);
  return number;
}
/// The option, or else the variable of the environment.
template <class T, class F>
std::optional<T> choose(const std::optional<T>& option, const char* name, const char* variable,
                        const char* expected, F valid) {
  if (!option) return environment<T>(variable, expected, valid);
  if (!valid(*option)) fail(errc::invalid_argument, name, " is ", *option, "; expected ", expected);
  return option;
}

}  // namespace

std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task,
                                                          const options& o) {
  const auto simulated = choose(o.simulated, "simulated_gpus", "DEFT_SIMULATED_GPUS",
                                "a number from 0 to 64", [](int n) { return n >= 0 && n <= 64; });
  const double limit = choose(o.memory_limit, "gpu_memory_limit", "DEFT_GPU_MEMORY_LIMIT",
                              "a part of a GPU's memory, above 0 and up to 1, or bytes",
                              [](double part) { return part > 0 && part < 1e18; })
                           .value_or(1);
  const bool allow_tf32 =
      o.allow_tf32 ? *o.allow_tf32 : environment<int>("DEFT_ALLOW_TF32", "0 or 1", [](int n) {
                                       return n == 0 || n == 1;
                                     }).value_or(0) == 1;
  auto made = !simulated       ? cuda::make_devices(task, allow_tf32, limit)
              : *simulated > 0 ? make_simulated(task, *simulated, limit)
                               : std::vector<std::unique_ptr<device_runtime>>();
  for (const auto& d : made) logging::info("uses ", to_string(d->info()));
  return made;
}

std::size_t limited_memory(double limit, std::size_t all) {
  const double bytes = limit > 1 ? limit : limit * static_cast<double>(all);
  return std::min(all, static_cast<std::size_t>(bytes));
}

void out_of_memory(const device_info& where, std::size_t asked, std::size_t used,
                   std::size_t limit) {
  fail(errc::resource_exhausted, to_string(*where.name), " cannot allocate ", asked,
       " bytes: tensors have ", used, " of ", limit, " there");
}

}  // namespace deft::ext::gpu
