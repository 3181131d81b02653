// SPDX-License-Identifier: Apache-2.0
// 03_placement.cpp: which device a node asks for, and which one it gets: nested scopes, a
// function that is called for each node, and a device that does not exist.
//
//     x ──┬── + 1 ────── outer       on(device("/job:localhost/task:0"))
//         ├── + 2 ────── inner       in that scope, on(device("/cpu:1"))
//         ├── + 3 ────── cleared     in both, on(device(nullptr))
//         ├── matmul ─── product     on(device(by_operation)): matmul on /cpu:2
//         ├── + 4 ────── rest        the same: the rest on /cpu:0
//         └── + 5 ────── missing     on(device("/cpu:7")), of a session with three processors
//
// prints: inner .*/task:0/cpu:1 .*/task:0/cpu:1
// prints: missing .*/cpu:7 .*/task:0/cpu:0
#include <cstdio>
#include <deft/deft.hpp>

int main() {
  using namespace deft;
  placeholder<float, 2, 2> x("x");
  tensor<float, 2, 2> outer, inner, cleared, product, rest, missing;

  if (auto job = on(device("/job:localhost/task:0"))) {
    outer = x + 1;
    if (auto processor = on(device("/cpu:1"))) {
      inner = x + 2;  // both names count; where both set a part, the inner one does
      if (auto anywhere = on(device(nullptr))) cleared = x + 3;
    }
  }
  auto by_operation = [](const node_info& n) { return n.op == "matmul" ? "/cpu:2" : "/cpu:0"; };
  if (auto asked = on(device(by_operation))) {
    product = matmul(x, x);
    rest = x + 4;
  }
  if (auto nowhere = on(device("/cpu:7"))) missing = x + 5;

  // Soft placement takes a device that exists for `missing`; without it, running that throws.
  session s({.allow_soft_placement = true, .cpu_devices = 3, .simulated_gpus = 0});
  const std::string task = "/job:localhost/replica:0/task:0";
  struct {
    const char* name;
    tensor<float, 2, 2> node;
    std::string gets;
  } const nodes[] = {{"outer", outer, task + "/cpu:0"},     {"inner", inner, task + "/cpu:1"},
                     {"cleared", cleared, task + "/cpu:0"}, {"product", product, task + "/cpu:2"},
                     {"rest", rest, task + "/cpu:0"},       {"missing", missing, task + "/cpu:0"}};
  bool right = true;
  std::printf("%-8s %-28s %s\n", "node", "asks for", "runs on");
  for (const auto& n : nodes) {
    const std::string asks = requested_device(n.node), gets = s.device_of(n.node);
    std::printf("%-8s %-28s %s\n", n.name, asks.empty() ? "anything" : asks.c_str(), gets.c_str());
    right = right && gets == n.gets;
  }

  // One run over three devices: deft moves the values that cross from one to another.
  ndarray<float, 2, 2> total = s.run(inner + product + missing, x = {{1, 2}, {3, 4}});
  std::printf("inner + product + missing =\n%s\n", to_string(total).c_str());
  return right && total == ndarray<float, 2, 2>{16, 21, 28, 37} ? 0 : 1;
}
