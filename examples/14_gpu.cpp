// SPDX-License-Identifier: Apache-2.0
// 14_gpu.cpp: what devices there are, and one fused expression on /gpu:0 and on /cpu:0: where it
// ran, what came out, and how long it took. A machine without a GPU simulates two.
//
//     x ──┬── relu(x * 2 + b) - sigmoid(x)   on /gpu:0
//     b ──┴── relu(x * 2 + b) - sigmoid(x)   on /cpu:0
//
// prints: /gpu:0 \(
// prints: on /job:localhost/replica:0/task:0/gpu:0: .* us
// prints: on /job:localhost/replica:0/task:0/cpu:0: .* us
// prints: largest difference: [0-9.e-]+
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deft/deft.hpp>

namespace {

bool has_gpu(deft::session& s) {
  for (const auto& d : s.devices())
    if (d.name->type == "gpu") return true;
  return false;
}

/// Microseconds of the quickest of a few runs of `f`.
template <class F>
double best_of(F f) {
  using clock = std::chrono::steady_clock;
  double best = 1e30;
  for (int i = 0; i < 20; ++i) {
    const auto begin = clock::now();
    f();
    best = std::min(best, std::chrono::duration<double, std::micro>(clock::now() - begin).count());
  }
  return best;
}

}  // namespace

int main() {
  using namespace deft;
  session found;
  session s(has_gpu(found) ? session_options() : session_options{.simulated_gpus = 2});
  for (const auto& d : s.devices()) std::printf("%s\n", to_string(d).c_str());

  variable<float, 1000, 1000> x("x", random_normal(0, 1));
  variable<float, 1000> b("b", ones());
  auto on_gpu = on(device("/gpu:0"), [&] { return relu(x * 2 + b) - sigmoid(x); });
  auto on_cpu = on(device("/cpu:0"), [&] { return relu(x * 2 + b) - sigmoid(x); });
  s.run(initialize_all());

  ndarray<float, 1000, 1000> first = s.run(on_gpu), second = s.run(on_cpu);
  for (const any_tensor& y : {any_tensor(on_gpu), any_tensor(on_cpu)}) {
    auto run = s.prepare(group(y));
    std::printf("on %s: %.0f us\n", s.device_of(y).c_str(), best_of(run));
  }
  float worst = 0;
  for (int i = 0; i < 1'000'000; ++i)
    worst = std::max(worst, std::abs(first.data()[i] - second.data()[i]));
  std::printf("largest difference: %g\n", static_cast<double>(worst));
  return worst < 1e-5f ? 0 : 1;
}
