// SPDX-License-Identifier: Apache-2.0
// tests/programs/compile_and_exit.cpp MS: ends while sources are being compiled, some milliseconds
// after it has asked for them. The sleep synchronizes nothing: whatever the compiler is doing when
// it is over, the process has to end well; different times only make different moments likely.
#include <deft/core/text.hpp>
#include <deft/kernels/gpu/compilations.hpp>

#include <chrono>
#include <cstdlib>
#include <thread>

int main(int, char** argv) {
  for (int i = 0; i < 30; ++i)
    deft::ext::gpu::compilations().ask(
        deft::ext::str("extern \"C\" __global__ void f", i, "(float* x) { *x = expf(*x); }"),
        "sm_90");
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[1])));
  std::exit(3);
}
