// SPDX-License-Identifier: Apache-2.0
// tests/gpu_main.cpp: doctest's main for tests that have sessions. It says first which GPUs those
// find: none, or as many simulated ones as DEFT_SIMULATED_GPUS says, whatever the machine has; with
// DEFT_TEST_GPUS=cuda the machine's own, or it ends with 77, which ctest takes for skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <deft/kernels/gpu/devices.hpp>

#include <cstdio>

#include "gpus.hpp"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  if (testing::on_cuda()) {
    unsetenv("DEFT_SIMULATED_GPUS");
    if (deft::ext::gpu::cuda::make_devices(deft::parse_device("/job:localhost/task:0")).empty()) {
      std::puts("skipped: CUDA shows no GPU here, or deft was built without CUDA");
      return 77;
    }
  } else {
    if (const char* asked = std::getenv("DEFT_TEST_GPUS"); asked && *asked) {
      std::fprintf(stderr, "DEFT_TEST_GPUS is \"%s\"; expected cuda, or nothing\n", asked);
      return 2;
    }
    setenv("DEFT_SIMULATED_GPUS", "0", false);
    context.addFilter("test-suite-exclude", testing::needs_cuda);
  }
  return context.run();
}
