// SPDX-License-Identifier: Apache-2.0
// 01_hello.cpp: a graph is written, then run: two numbers are fed, their product is fetched.
//
//     a ──┐
//         ├── mul ── c
//     b ──┘
//
// prints: 6 \* 7 = 42, computed on /job:localhost
#include <cstdio>
#include <deft/deft.hpp>

int main() {
  using namespace deft;
  placeholder<float> a("a"), b("b");
  tensor<float> c = a * b;  // a node of the graph; nothing is computed yet

  session s;
  float product = s.run(c, a = 6.f, b = 7.f);
  std::printf("6 * 7 = %g, computed on %s\n", product, s.device_of(c).c_str());
  return product == 42 ? 0 : 1;
}
