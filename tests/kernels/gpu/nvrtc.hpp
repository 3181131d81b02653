// SPDX-License-Identifier: Apache-2.0
// tests/kernels/gpu/nvrtc.hpp: helpers for tests of NVIDIA's run-time compiler.
#pragma once
#include <dlfcn.h>

#include <deft/core/error.hpp>
#include <deft/kernels/gpu/nvrtc.hpp>

#include "testing.hpp"

namespace testing {

/// Whether a test must be skipped because NVRTC is missing; prints a message then.
inline bool skipped_without_nvrtc() {
  if (deft::ext::gpu::has_nvrtc()) return false;
  MESSAGE("skipped: libnvrtc was not found");
  return true;
}

/// What this machine's first GPU has programs compiled for, such as "sm_90", as its driver says.
inline std::string cuda_architecture() {
  static const std::string architecture = [] {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    void* const f = driver ? dlsym(driver, "cuDeviceGetAttribute") : nullptr;
    if (!f) deft::ext::fail(deft::errc::not_found, "there is no GPU driver");
    const auto query = reinterpret_cast<int (*)(int*, int, int)>(f);
    int major = 0, minor = 0;
    constexpr int capability_major = 75, capability_minor = 76;  // of cuda.h
    query(&major, capability_major, 0);
    query(&minor, capability_minor, 0);
    return deft::ext::str("sm_", major, minor);
  }();
  return architecture;
}

}  // namespace testing
