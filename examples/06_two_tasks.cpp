// SPDX-License-Identifier: Apache-2.0
// 06_two_tasks.cpp: one graph over two tasks of a cluster; x and y1 cross to the second.
//
//     /job:worker/task:0          /job:worker/task:1
//
//     x ────── + 300 ── y1 ─────────────┐
//       │                               ├── add ── z
//       └────────────────── − 66 ── y2 ─┘
//
// prints: 238
#include <cstdio>
#include <deft/deft.hpp>

int main() {
  using namespace deft;
  local_cluster cluster{{"worker", 2}};  // two servers on loopback, in this process

  placeholder<int> x("x");
  tensor<int> y1, y2, z;
  if (auto first = on(device("/job:worker/task:0"))) y1 = x + 300;
  if (auto second = on(device("/job:worker/task:1"))) {
    y2 = x - 66;
    z = y1 + y2;
  }

  session s(cluster.target("worker", 0));
  int value = s.run(z, x = 2);
  std::printf("%d\n", value);
  return value == 238 ? 0 : 1;
}
