// SPDX-License-Identifier: Apache-2.0
// Counting the GPUs of this machine, which may have none, is not an error and creates no context on
// them; neither does a session that uses the processor alone. CUDA_VISIBLE_DEVICES says which there
// are.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deft/deft.hpp>
#include <deft/kernels/gpu/cuda/tables.hpp>
#include <deft/kernels/gpu/devices.hpp>

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

std::vector<std::unique_ptr<deft::ext::device_runtime>> devices_of_cuda() {
  return deft::ext::gpu::cuda::make_devices(deft::parse_device("/job:test/task:0"));
}
/// How many there are for a process that starts with that CUDA_VISIBLE_DEVICES. Before this process
/// itself has looked.
std::size_t count_of(const char* visible) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    _exit(static_cast<int>(devices_of_cuda().size()));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<std::size_t>(WEXITSTATUS(status)) : 255;
}

/// A step on the processor, with values that copies to a GPU would pin.
void compute_on_processor() {
  using namespace deft;
  placeholder<float, dyn> x("x");
  variable<float> w = on(device("/cpu:0"), [] { return variable<float>("w", ones()); });
  auto total = on(device("/cpu:0"), [&] { return sum(x * w); });
  session s;
  s.run(initialize_all());
  s.run(total, x = ndarray<float, dyn>(3 << 20));
}

}  // namespace

int main() {
  const std::size_t without = count_of(""), first = count_of("0");
  const auto devices = devices_of_cuda();
  std::printf("%zu tables of kernels\n", deft::ext::gpu::cuda::kernel_tables().size());
  if (deft::ext::gpu::cuda::kernel_tables().empty()) return 1;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  int faults = 0;
  if (without != 0 || first != std::min<std::size_t>(1, devices.size())) {
    std::printf("CUDA_VISIBLE_DEVICES: %zu GPUs of \"\", %zu of \"0\"\n", without, first);
    ++faults;
  }
  compute_on_processor();
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
