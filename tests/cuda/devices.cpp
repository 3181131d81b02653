// SPDX-License-Identifier: Apache-2.0
// Counting the GPUs of this machine, which may have none, is not an error and creates no context on
// them.
#include <dlfcn.h>

#include <cstdio>
#include <deft/execute/gpu/cuda/tables.hpp>
#include <deft/execute/gpu/devices.hpp>

namespace {

/// Whether the driver keeps a context of this process on that GPU.
bool has_context(void* driver, int number) {
  auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  auto state =
      reinterpret_cast<int (*)(int, unsigned*, int*)>(dlsym(driver, "cuDevicePrimaryCtxGetState"));
  int device = 0, active = 0;
  unsigned flags = 0;
  return get && state && get(&device, number) == 0 && state(device, &flags, &active) == 0 && active;
}

}  // namespace

int main() {
  const auto devices = deft::gpu::cuda::make_devices(deft::parse_device("/job:test/task:0"));
  std::printf("%zu tables of kernels\n", deft::gpu::cuda::kernel_tables().size());
  if (deft::gpu::cuda::kernel_tables().empty()) return 1;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  int faults = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& d = *devices[i];
    std::printf("%s\n", to_string(d.info()).c_str());
    if (d.info().memory == 0 || d.info().bus_id.empty() || !d.find_kernel("add")) ++faults;
    if (driver && has_context(driver, static_cast<int>(i))) {
      std::printf("there is a context on it\n");
      ++faults;
    }
  }
  if (devices.empty()) std::printf("no GPU\n");
  return faults;
}
