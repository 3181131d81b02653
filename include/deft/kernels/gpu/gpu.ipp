// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/gpu.ipp: the kinds of GPUs, real and simulated, and their settings.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
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

/// Where that is asked for: with 0 there are none of either kind.
std::vector<std::unique_ptr<device_runtime>> make_simulated(const device_name& task,
                                                            const device_settings& settings) {
  const int count = static_cast<int>(settings.get("simulated_gpus").value_or(0));
  if (count == 0) return {};
  if (const simulated::factory make = simulated::device_factory())
    return make(task, count, settings.get("gpu_memory_limit").value_or(1));
  fail(errc::unimplemented, count,
       " simulated GPUs are asked for, and this program does not link them: in CMake, link "
       "deft::simulated_gpus, which needs Thrust, from the CUDA Toolkit or libthrust-dev; with "
       "DEFT_IMPLEMENTATION, have Thrust's headers in the include path (the toolkit's are in its "
       "folder include/cccl)");
}
std::vector<std::unique_ptr<device_runtime>> make_real(const device_name& task,
                                                       const device_settings& settings) {
  if (settings.get("simulated_gpus")) return {};
  return cuda::make_devices(task, settings.get("allow_tf32").value_or(0) != 0,
                            settings.get("gpu_memory_limit").value_or(1));
}

constexpr device_setting simulated_settings[] = {
    {.flag = "simulated_gpus",
     .meaning = "number of GPUs that the CPU simulates: /gpu:0, /gpu:1, …",
     .variable = "DEFT_SIMULATED_GPUS",
     .valid = [](double n) { return n >= 0 && n <= 64; },
     .expected = "a number from 0 to 64",
     .advice = "session_options.simulated_gpus gives this process GPUs that its CPU simulates"}};
constexpr device_setting cuda_settings[] = {
    {.flag = "allow_tf32",
     .is = device_setting::form::truth,
     .meaning = "multiply and convolve floats in TF32 on GPUs: faster, with 11 significant bits",
     .variable = "DEFT_ALLOW_TF32"},
    {.flag = "gpu_memory_limit",  // of simulated ones, too
     .is = device_setting::form::number,
     .meaning = "memory of each GPU for tensors: a fraction, up to 1, or bytes",
     .variable = "DEFT_GPU_MEMORY_LIMIT",
     .valid = [](double part) { return part > 0 && part < 1e18; },
     .expected = "a part of a GPU's memory, above 0 and up to 1, or bytes"}};

}  // namespace

constinit const device_kind simulated::kind{
    .type = "gpu", .rank = 0, .settings = simulated_settings, .make = &make_simulated};
constinit const device_kind cuda::kind{
    .type = "gpu", .rank = 0, .settings = cuda_settings, .make = &make_real};

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
