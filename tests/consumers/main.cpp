// SPDX-License-Identifier: Apache-2.0
// A user's program: two files that include deft, one of them with a model.
#include <deft/deft.hpp>
#include <iostream>

using namespace deft;

tensor<float, dyn, 2> layer(const placeholder<float, dyn, 3>& x);  // model.cpp

#if __has_include(<thrust/for_each.h>) && !defined(DEFT_NO_THRUST)
/// Compares simulated GPUs, with the installed version of Thrust, and the processor: many elements,
/// and rows that are added after a sort of their indices.
bool gpus_agree() {
  placeholder<float, dyn, 4> x("x");
  placeholder<std::int32_t, dyn> row("row");
  auto slope = [&](const char* where) {
    auto there = on(device(where));
    auto [dx] = gradients(sum(square(gather(x, row))), x);
    return dx;
  };
  auto on_gpu = slope("/gpu:0"), on_processor = slope("/cpu:0");
  ndarray<float, dyn, 4> rows(5000);
  ndarray<std::int32_t, dyn> picked(7000);
  for (int i = 0; i < 20'000; ++i) rows.data()[i] = static_cast<float>(i % 13 - 6);
  for (int i = 0; i < 7000; ++i) picked(i) = i * 37 % 5000;
  session s({.simulated_gpus = 1});
  auto [a, b] = s.run(on_gpu, on_processor, x = rows, row = picked);
  std::cout << "on " << s.device_of(on_gpu) << ": " << (a == b ? "the same" : "others") << '\n';
  return a == b && a(37, 0) != 0 && s.device_of(on_gpu).ends_with("/gpu:0");
}
#else
bool gpus_agree() { return true; }
#endif

int main() {
  placeholder<float, dyn, 3> x("x");
  auto y = layer(x);
  session s;
  ndarray<float, dyn, 3> rows{1, 2, 3, -4, -5, -6};
  ndarray<float, dyn, 2> v = s.run(y, x = rows);
  std::cout << v << '\n';
  return v == ndarray<float, dyn, 2>{4, 5, 0, 0} && gpus_agree() ? 0 : 1;
}
