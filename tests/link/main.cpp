// SPDX-License-Identifier: Apache-2.0
// Files that see deft/expr.hpp only and files that see deft/deft.hpp in one program: whatever the
// order in which they are linked, an expression of both is one node, and its kernel is found.
#include <cstdio>
#include <deft/deft.hpp>

#include "sides.hpp"

using namespace deft;
using namespace deft::ext;

int main() {
  int failures = 0;
  auto expect = [&](bool ok, const char* what, int way) {
    if (ok) return;
    std::printf("way %d: %s\n", way, what);
    ++failures;
  };
  placeholder<float, 4> x("x");
  variable<float, 4> v("v", zeros());
  auto program_of = [](const output& o) -> const program& {
    return *decode<op::fused>(o.node->attributes).program;
  };
  std::vector<output> kept;
  for (int way = 0; way < ways; ++way) {
    output first = expr_side(x, v, way), second = deft_side(x, v, way);
    expect(first == second, "the two files made two nodes", way);
    expect(find_fused(program_of(second)) != nullptr, "the compiled kernel is not found", way);
    kept.push_back(second);
  }
  output alone = expr_side_alone(x);
  expect(find_fused(program_of(alone)) == nullptr, "a kernel that nobody compiled is found", -1);
  session s;
  ndarray<float, 4> in{0, 0.5f, 1, 2};
  any_array both = s.run(any_tensor(alone), x = in);
  expect(both.data<float>()[3] == 3.f, "the portable program gives another result", -1);
  ndarray<float, 4> relu_of = s.run(tensor<float, 4>(any_tensor(kept[0])), x = in);
  expect(relu_of == ndarray<float, 4>{1, 2, 3, 5}, "the compiled kernel gives another result", 0);
  return failures;
}
