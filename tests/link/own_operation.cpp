// SPDX-License-Identifier: Apache-2.0
// A program none of whose files includes deft/deft.hpp writes graphs with operations of its own; to
// run or differentiate them it is told what to do. With COMPILED, the other file includes it. The
// library's own operations are all there, also those of folders that no file of it includes.
#include <cstdio>
#include <deft/expr.hpp>
#include <deft/kernels/cpu/device.hpp>
#include <deft/op/gradients.hpp>
#include <deft/session/session.hpp>

#include "own_operations.hpp"

using namespace deft;

namespace {

int failures = 0;

/// `f` throws an error that opens with `sentence`; none if that is empty.
template <class F>
void expect(std::string_view sentence, F f) {
  std::string got;
  try {
    f();
  } catch (const error& e) {
    got = e.what();
  }
  if (sentence.empty() ? got.empty() : got.starts_with(sentence)) return;
  std::printf("expected \"%s\"\n     got \"%s\"\n", std::string(sentence).c_str(), got.c_str());
  ++failures;
}

}  // namespace

int main() {
  placeholder<float, 3> x("x");
  placeholder<double, 3> d("d");
  const ndarray<float, 3> v{-1, 0, 1};
  session s;
  tensor<float, 3> alone = testing::make_swish(x), inside = testing::make_swish(x) * 2 + 1;
  tensor<float, 3> sums = testing::make_running_sum(x);
  any_tensor folded = testing::make_swish(any_tensor(constant({1.f, 2.f})));
#ifdef COMPILED
  constexpr std::string_view swish, running, slope;
  const std::string_view other =
      "[test_swish] has no kernel for double in this program: a file that uses it for double must "
      "include deft/deft.hpp";
#else
  const std::string_view swish =
      "[test_swish] has no kernel in this program: a file that uses it must include deft/deft.hpp";
  const std::string_view running =
      "[test_running_sum] has no kernel in this program: a file that uses it must include "
      "deft/deft.hpp";
  const std::string_view slope =
      "[test_swish] has no gradient in this program: a file that uses it must include "
      "deft/deft.hpp";
  const std::string_view other = swish;
#endif
  expect(swish, [&] { s.run(alone, x = v); });
  expect(swish, [&] { s.run(inside, x = v); });
  expect(swish, [&] { s.run(folded); });
  expect(running, [&] { s.run(sums, x = v); });
  expect(slope, [&] { gradients(sum(alone), x); });
  expect(other, [&] { s.run(testing::make_swish(d), d = ndarray<double, 3>{1, 2, 3}); });
  expect("", [] {
    if (!ext::find_op("await_replicas") || !ext::find_cpu_kernel("await_replicas"))
      throw error(errc::internal, "nothing of train/replicas/ was linked");
  });
  return failures;
}
