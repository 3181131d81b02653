// SPDX-License-Identifier: Apache-2.0
// 04_pi_devices.cpp: the same work on several devices at once. Each of four draws points in a
// square and finds what part of them is in a circle; the CPU adds up the four, which gives pi.
//
//     x, y ── x² + y² < 1 ── mean   on /cpu:0 ──┐
//     x, y ── x² + y² < 1 ── mean   on /cpu:1 ──┤
//     x, y ── x² + y² < 1 ── mean   on /cpu:2 ──┼── add ── pi   on /cpu:0
//     x, y ── x² + y² < 1 ── mean   on /cpu:3 ──┘
//
// prints: pi is about 3\.1[34]
#include <cmath>
#include <cstdio>
#include <deft/deft.hpp>
#include <string>

int main() {
  using namespace deft;
  constexpr int devices = 4;
  set_seed(1);

  tensor<float> parts[devices];
  for (int i = 0; i < devices; ++i) {
    auto there = on(device("/cpu:" + std::to_string(i)));
    auto x = random_uniform(shape<1'000'000>), y = random_uniform(shape<1'000'000>);
    parts[i] = mean(cast<float>(x * x + y * y < 1));  // the part within a quarter of the circle
  }
  tensor<float> pi = constant(0.f);
  if (auto sum = on(device("/cpu:0")))
    for (const auto& part : parts) pi = pi + 4 * part / devices;

  session s({.cpu_devices = devices});
  for (const auto& part : parts) std::printf("a part on %s\n", s.device_of(part).c_str());
  std::printf("the sum on %s\n", s.device_of(pi).c_str());

  float value = s.run(pi);
  std::printf("pi is about %.4f\n", static_cast<double>(value));
  return std::abs(value - 3.14159f) < 0.005f ? 0 : 1;
}
