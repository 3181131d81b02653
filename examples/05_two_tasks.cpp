// SPDX-License-Identifier: Apache-2.0
// 05_two_tasks.cpp: one graph over two tasks of a cluster; values cross where they have to.
//
//     /job:worker/task:0          /job:worker/task:1
//
//     x = 2 ── + 300 ── y1 ─────────────┐
//       │                               ├── add ── z
//       └────────────────── − 66 ── y2 ─┘
#include <cstdio>
#include <deft/deft.hpp>

int main() {
  using namespace deft;
  local_cluster cluster{{"worker", 2}};  // two servers on loopback, in this process

  tensor<int, 1> x, y1, y2, z;
  if (auto first = on(device("/job:worker/task:0"))) {
    x = constant({2});
    y1 = x + 300;
  }
  if (auto second = on(device("/job:worker/task:1"))) {
    y2 = x - 66;
    z = y1 + y2;
  }

  session s(cluster.target("worker", 0));
  ndarray<int, 1> value = s.run(z);
  std::printf("%d\n", value(0));
  return value(0) == 238 ? 0 : 1;
}
