// SPDX-License-Identifier: Apache-2.0
// A user's program: two files that include deft, one of them with a model.
#include <deft/deft.hpp>
#include <iostream>

using namespace deft;

tensor<float, dyn, 2> layer(const placeholder<float, dyn, 3>& x);  // model.cpp

int main() {
  placeholder<float, dyn, 3> x("x");
  auto y = layer(x);
  session s;
  ndarray<float, dyn, 3> rows{1, 2, 3, -4, -5, -6};
  ndarray<float, dyn, 2> v = s.run(y, x = rows);
  std::cout << v << '\n';
  return v == ndarray<float, dyn, 2>{4, 5, 0, 0} ? 0 : 1;
}
