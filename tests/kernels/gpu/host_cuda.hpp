// SPDX-License-Identifier: Apache-2.0
// tests/kernels/gpu/host_cuda.hpp: generated CUDA source, compiled by the host's compiler and run
// on the host: each thread of a block is a fiber, which runs until it waits for the others.
#pragma once
#include <dlfcn.h>
#include <unistd.h>
#include <deft/core/erf.hpp>
#include <deft/core/error.hpp>
#include <deft/core/text.hpp>
#include <deft/kernels/gpu/prelude.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace testing {

/// CUDA's built-in names, for the host.
inline constexpr const char* host_cuda = R"cpp(
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
  struct index3 {
    unsigned x;
  };
  static index3 blockIdx, blockDim, gridDim, threadIdx;

  static inline float __fmul_rn(float a, float b) {
    volatile float p = a * b;
    return p;
  }
  static inline double __dmul_rn(double a, double b) {
    volatile double p = a * b;
    return p;
  }
  static inline float __int_as_float(int v) {
    float f;
    memcpy(&f, &v, 4);
    return f;
  }
  static inline float __uint_as_float(unsigned v) {
    float f;
    memcpy(&f, &v, 4);
    return f;
  }
  static inline unsigned __float_as_uint(float f) {
    unsigned v;
    memcpy(&v, &f, 4);
    return v;
  }
  static inline double __longlong_as_double(long long v) {
    double d;
    memcpy(&d, &v, 8);
    return d;
  }
  static inline unsigned atomicCAS(unsigned* p, unsigned expected, unsigned v) {
    const unsigned was = *p;
    if (was == expected) *p = v;
    return was;
  }

  // Fibers run in turn: one that waits resumes once every other one has waited or ended.
  struct fiber {
    ucontext_t context;
    char* stack = nullptr;
    bool alive = false;
    ~fiber() { free(stack); }
  };
  static fiber fibers[1024];
  static ucontext_t scheduler;
  static void (*body)(const void*);
  static const void* body_argument;
  static void start_fiber() {
    body(body_argument);
    fibers[threadIdx.x].alive = false;
    swapcontext(&fibers[threadIdx.x].context, &scheduler);
  }
  static void wait_for_others() {
    const unsigned own = threadIdx.x;
    swapcontext(&fibers[own].context, &scheduler);
  }
  static inline void __syncthreads() { wait_for_others(); }
  static unsigned long long slots[1024];
  template <class T>
  static T exchange(T v, unsigned from) {
    memcpy(&slots[threadIdx.x], &v, sizeof v);
    wait_for_others();
    T got;
    memcpy(&got, &slots[from], sizeof got);
    wait_for_others();
    return got;
  }
  template <class T>
  static T __shfl_down_sync(unsigned, T v, int d, int width) {
    const unsigned t = threadIdx.x;
    return exchange(v, t % width + d < static_cast<unsigned>(width) ? t + d : t);
  }
  template <class T>
  static T __shfl_sync(unsigned, T v, int from, int width) {
    return exchange(v, threadIdx.x / width * width + from);
  }

  /// Runs each thread alone, or all threads of a block in turn.
  static void launch(void (*f)(const void*), const void* argument, unsigned blocks,
                     unsigned threads, bool together) {
    body = f, body_argument = argument;
    blockDim.x = threads, gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
      if (!together) {
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) f(argument);
        continue;
      }
      for (unsigned t = 0; t < threads; ++t) {
        fiber& own = fibers[t];
        constexpr size_t size = 64 << 10;
        if (!own.stack) own.stack = static_cast<char*>(malloc(size));
        getcontext(&own.context);
        own.context.uc_stack.ss_sp = own.stack;
        own.context.uc_stack.ss_size = size;
        own.context.uc_link = nullptr;
        makecontext(&own.context, start_fiber, 0);
        own.alive = true;
      }
      for (bool any = true; any;) {
        any = false;
        for (unsigned t = 0; t < threads; ++t)
          if (fibers[t].alive)
            threadIdx.x = t, swapcontext(&scheduler, &fibers[t].context), any = true;
      }
    }
  }
)cpp";

/// CUDA's erfcx, which the host's library lacks, as deft computes it there.
inline std::string host_erfcx() {
  using series = deft::ext::erf_series<double>;
  std::string terms;
  for (double c : series::scaled) terms += deft::ext::str(c, ", ");
  return deft::ext::str("static const double erfcx_series[] = {", terms, R"(};
  static double erfcx(double x) {
    const double a = x < )",
                        series::most, " ? x : x == x ? ", series::most, " : x, q = (a - ",
                        series::middle, ") / (a + ", series::middle, R"();
    double y = 0;
    for (int i = sizeof erfcx_series / sizeof *erfcx_series; i-- > 0;)
      y = __dmul_rn(y, q) + erfcx_series[i];
    return y / (1 + (a + a));
  }
  static float erfcxf(float x) { return static_cast<float>(erfcx(x)); }
)");
}

/// A shared library compiled from CUDA source.
class host_library {
 public:
  /// `text` follows CUDA's built-in names and the prelude.
  explicit host_library(const std::string& text) {
    std::string folder = (std::filesystem::temp_directory_path() / "deft_XXXXXX").string();
    if (!mkdtemp(folder.data())) deft::ext::fail(deft::errc::internal, "no temporary folder");
    const std::string source = folder + "/program.cpp", library = folder + "/program.so";
    std::ofstream(source) << host_cuda << host_erfcx() << deft::ext::gpu::prelude << text;
    const std::string command =
        deft::ext::str(DEFT_TEST_COMPILER, " -std=c++17 -O1 -ffp-contract=off -w -fPIC -shared -o ",
                       library, ' ', source, " 2> ", folder, "/log");
    const int status = std::system(command.c_str());
    std::ifstream log(folder + "/log");
    const std::string said((std::istreambuf_iterator<char>(log)), {});
    if (status == 0) at_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!std::getenv("DEFT_TEST_KEEP")) std::filesystem::remove_all(folder);
    if (!at_)
      deft::ext::fail(deft::errc::internal, "generated source is not C++: ", said.substr(0, 4000));
  }
  host_library(const host_library&) = delete;
  ~host_library() { dlclose(at_); }

  template <class F>
  F* find(const std::string& name) const {
    void* const f = dlsym(at_, name.c_str());
    if (!f) deft::ext::fail(deft::errc::not_found, "no ", name, " in generated source");
    return reinterpret_cast<F*>(f);
  }

 private:
  void* at_ = nullptr;
};

/// Whether the compiler that the tests were built with is available; prints a message if not.
inline bool has_host_compiler() {
  const std::string command = DEFT_TEST_COMPILER " --version > /dev/null 2>&1";
  static const bool found = std::system(command.c_str()) == 0;
  if (!found) MESSAGE("skipped: no compiler at " DEFT_TEST_COMPILER);
  return found;
}

}  // namespace testing
