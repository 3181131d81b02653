// SPDX-License-Identifier: Apache-2.0
// 07_map_reduce.cpp: map and reduce, here the mean of 100 numbers. One task takes 30 of them and
// the other 70; the means of the two parts are combined by their sizes.
//
//     /job:worker/task:0                          /job:worker/task:1
//
//     x ──┬── first 30 ── mean, size ──┐
//         └── last 70 ─────────────────┼────────── mean, size
//                                      │                │
//                  weighted mean ◀─────┴────────────────┘
//
// prints: parts of 30 and 70: means 14.5 and 64.5
// prints: mean of all: 49.5
#include <cstdio>
#include <deft/deft.hpp>
#include <numeric>
#include <string>

/// `begin`, `begin` + 1, … as indices.
template <std::int64_t N>
deft::tensor<std::int64_t, N> count_from(std::int64_t begin) {
  deft::ndarray<std::int64_t, N> numbers;
  std::iota(numbers.begin(), numbers.end(), begin);
  return deft::constant(std::move(numbers));
}

int main() {
  using namespace deft;
  local_cluster cluster{{"worker", 2}};
  placeholder<float, 100> x("x");

  tensor<float> means[2], sizes[2], mean_of_all;
  auto map = [&](int task, const auto& part) {
    auto there = on(device("/job:worker/task:" + std::to_string(task)));
    means[task] = mean(part);
    sizes[task] = cast<float>(size_of(part));
  };
  map(0, gather(x, count_from<30>(0)));
  map(1, gather(x, count_from<70>(30)));
  if (auto reduce = on(device("/job:worker/task:0")))
    mean_of_all = (means[0] * sizes[0] + means[1] * sizes[1]) / (sizes[0] + sizes[1]);

  ndarray<float, 100> numbers;
  std::iota(numbers.begin(), numbers.end(), 0.f);
  session s(cluster.target("worker", 0));
  auto [m0, m1, n0, n1, all] =
      s.run(means[0], means[1], sizes[0], sizes[1], mean_of_all, x = numbers);
  std::printf("parts of %g and %g: means %g and %g\n", n0, n1, m0, m1);
  std::printf("mean of all: %g\n", all);
  return all == 49.5f ? 0 : 1;
}
