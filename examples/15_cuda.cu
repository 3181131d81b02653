// SPDX-License-Identifier: Apache-2.0
// 15_cuda.cu: what a GPU does with what nvcc compiles: an expression, with an operation in it that
// the library does not have, is one kernel. The processor computes the same, for comparison.
//
//     x ──┬── swish(x * 2 + b) - relu(b)   on /gpu:0
//     b ──┴── swish(x * 2 + b) - relu(b)   on /cpu:0
//
// prints: no GPU here|on /gpu:0: .* us
// prints: on /cpu:0: .* us
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deft/deft.hpp>
#include <string>

namespace ext = deft::ext;  // what operations are written with

struct swish_op : deft::op::elementwise<1, ext::typing::floating> {
  static constexpr std::string_view name = "swish";

  template <ext::num::value V>
  DEFT_HD V operator()(V x) const {
    return x * deft::op::sigmoid()(x);
  }
};
template <ext::expression X>
auto swish(const X& x, ext::source_location w = ext::here()) {
  return ext::make<swish_op>(w, x);
}

/// Whether there is a GPU for which swish was compiled: no simulated one.
bool has_gpu(deft::session& s) {
  for (const auto& d : s.devices())
    if (d.name->type == "gpu" && d.kernels->has("swish", deft::dtype::float32)) return true;
  return false;
}

int main() {
  using namespace deft;
  using clock = std::chrono::steady_clock;
  session s;
  const bool gpu = has_gpu(s);
  if (!gpu) std::printf("no GPU here\n");

  ndarray<float, 1000, 1000> rows, values[2];
  for (int i = 0; i < 1'000'000; ++i) rows.data()[i] = static_cast<float>(i % 1999) / 500 - 2;
  for (int i = gpu ? 0 : 1; i < 2; ++i) {
    auto there = on(device(i == 0 ? "/gpu:0" : "/cpu:0"));
    variable<float, 1000, 1000> x("x" + std::to_string(i), rows);
    variable<float, 1000> b("b" + std::to_string(i), ones());
    tensor<float, 1000, 1000> y = swish(x * 2 + b) - relu(b);
    s.run(initialize_all());
    values[i] = s.run(y);

    auto run = s.prepare(group(y));
    double best = 1e30;
    for (int k = 0; k < 20; ++k) {
      const auto begin = clock::now();
      run();
      best =
          std::min(best, std::chrono::duration<double, std::micro>(clock::now() - begin).count());
    }
    std::printf("on %s: %.0f us\n", i == 0 ? "/gpu:0" : "/cpu:0", best);
  }
  float worst = 0;
  for (int i = 0; gpu && i < 1'000'000; ++i)
    worst = std::max(worst, std::abs(values[0].data()[i] - values[1].data()[i]));
  if (gpu) std::printf("largest difference: %g\n", static_cast<double>(worst));
  return worst < 1e-5f ? 0 : 1;
}
