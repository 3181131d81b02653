// SPDX-License-Identifier: Apache-2.0
// 08_pi_client.cpp: a client of servers in other processes. It knows the address of one task; the
// session lists the devices of the whole cluster, and each processor among them draws points.
//
//     x, y ── x² + y² < 1 ── mean   on /job:worker/task:0/cpu:0 ──┐
//     x, y ── x² + y² < 1 ── mean   on /job:worker/task:1/cpu:0 ──┼── mean ── pi
//     …                                                           │
//
// Start 08_pi_server first; it prints the addresses of its tasks:
//
//     08_pi_client deft://localhost:2222
//
// servers: 08_pi_server
// prints: 2 parts
// prints: pi is about 3\.14
#include <cmath>
#include <cstdio>
#include <deft/deft.hpp>
#include <vector>

int main(int argc, char** argv) {
  using namespace deft;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s deft://HOST:PORT\n", argv[0]);
    return 2;
  }
  session s(argv[1]);

  std::vector<tensor<float>> parts;
  for (const auto& d : s.devices()) {
    if (d.name->type != "cpu") continue;
    auto there = on(device(*d.name));
    auto x = random_uniform(shape<1'000'000>), y = random_uniform(shape<1'000'000>);
    parts.push_back(mean(cast<float>(x * x + y * y < 1)));
    std::printf("a part on %s\n", to_string(*d.name).c_str());
  }
  tensor<float> inside = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) inside = inside + parts[i];
  auto step = s.prepare(4 * inside / static_cast<float>(parts.size()));

  constexpr int steps = 10;  // each of which draws other points
  float pi = 0;
  for (int i = 0; i < steps; ++i) pi += step() / steps;
  std::printf("%zu parts, %d steps: pi is about %.4f\n", parts.size(), steps,
              static_cast<double>(pi));
  return std::abs(pi - 3.14159f) < 0.002f ? 0 : 1;
}
