// SPDX-License-Identifier: Apache-2.0
// printed.cpp: values for gdb to print. A line `// gdb: EXPRESSION = TEXT` says what of them it has
// to print in stop(), one frame up.
#include <deft/expr.hpp>

using namespace deft;

namespace {
[[gnu::noinline]] void stop() { asm volatile(""); }
}  // namespace

int main() {
  placeholder<float, dyn, 4> x("x");
  // gdb: x = float(?,4) placeholder "x" at printed.cpp:13
  variable<float, 4, 3> w("w", zeros());
  // gdb: w = float(4,3) variable "w" at printed.cpp:15
  any_variable b("b", {3}, zeros(), dtype::float64);
  // gdb: b = double(3) variable "b" at printed.cpp:17
  tensor<float, dyn, 3> y, none;
  if (auto ps = on(device("/job:ps/task:1/cpu:0"))) y = name(matmul(x, w), "product");
  // gdb: y = float(?,3) matmul "product" on /job:ps/task:1/cpu:0 at printed.cpp:20
  // gdb: none = empty tensor
  any_tensor any = transpose(y);
  // gdb: any = float(3,?) transpose at printed.cpp:23
  operation train = group(w.assign_add(1.f));
  // gdb: train = group at printed.cpp:25

  auto e = relu(-y * 0.5f + constant({1.f, 2.f, 3.f}));
  // gdb: e = relu((-product * 0.5) + constant) at printed.cpp:28
  auto less = y < 2.f && y == y;
  // gdb: less = (product < 2) && (product == product)

  ndarray<float, 2, 3> matrix{1, 2, 3, 4, 5, 6.5f};
  // gdb: matrix = float(2,3) = {{1, 2, 3}, {4, 5, 6.5}}
  ndarray<std::uint8_t, dyn> bytes{65, 255};
  // gdb: bytes = uint8(2) = {65, 255}
  ndarray<bfloat16, 2> brief{1.5f, -0.1f};
  // gdb: brief = bfloat16(2) = {1.5, -0.1}
  ndarray<float16, 1, 2> halves{65504.f, 0.5f};
  // gdb: halves = half(1,2) = {{6.55e+04, 0.5}}
  ndarray<float, dyn, 3> empty;
  // gdb: empty = float(0,3)
  any_array scalar = any_array::scalar(true), nothing;
  // gdb: scalar = bool() = {true}
  // gdb: nothing = empty array

  dims d{2, dyn};
  // gdb: d = (2,?)
  dtype t = dtype::int64;
  // gdb: t = int64
  error wrong(errc::invalid_argument, "[matmul] inner extents differ", "y", ext::here());
  // gdb: wrong = invalid_argument: [matmul] inner extents differ, node "y" at printed.cpp:51
  stop();
  return same(none, y) + train.valid() + d.rank() + static_cast<int>(t) +
         (wrong.code() == errc::unknown);
}
