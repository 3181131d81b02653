// SPDX-License-Identifier: Apache-2.0
// 02_linear_regression.cpp: variables, and the gradients of a loss with respect to them: gradient
// descent fits a line to the points of y = 3x - 1.
//
//     x ──┐
//         ├── mul ──┐
//     w ──┘         ├── add ── − y ── square ── mean ── loss
//     b ────────────┘                                    │
//     ▲                                                  │
//     └── w −= 0.3 dw, b −= 0.3 db ◀────── gradients ◀───┘
//
// prints: w = 3.000, b = -1.000
// same losses: 1e-5
#include <cmath>
#include <cstdio>
#include <deft/deft.hpp>
#include <vector>

int main() {
  using namespace deft;
  placeholder<float, dyn> x("x"), y("y");
  variable<float> w("w", 0.f), b("b", 0.f);
  tensor<float> loss = mean(square(x * w + b - y));

  auto [dw, db] = gradients(loss, w, b);
  operation train = group(w.assign_sub(0.3f * dw), b.assign_sub(0.3f * db));

  std::vector<float> xs, ys;
  for (int i = 0; i < 100; ++i) {
    xs.push_back(static_cast<float>(i) / 50 - 1);
    ys.push_back(3 * xs.back() - 1);
  }

  session s;
  s.run(initialize_all());                          // each variable gets its first value
  auto step = s.prepare(loss, train, feeds(x, y));  // planned once, called often
  for (int i = 0; i < 100; ++i) {
    float l = step(xs, ys);
    if (i % 20 == 0) std::printf("step %d: loss %g\n", i, static_cast<double>(l));
  }
  auto [slope, offset] = s.run(w, b);
  std::printf("w = %.3f, b = %.3f\n", static_cast<double>(slope), static_cast<double>(offset));
  return std::abs(slope - 3) < 1e-3f && std::abs(offset + 1) < 1e-3f ? 0 : 1;
}
