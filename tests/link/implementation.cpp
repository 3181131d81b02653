// SPDX-License-Identifier: Apache-2.0
// All of deft in one file, and a model: for a compiler that does not build the tests.
#define DEFT_IMPLEMENTATION
#include <deft/deft.hpp>

using namespace deft;

int main() {
  placeholder<float, dyn, 4> x("x");
  placeholder<std::int32_t, dyn> label("label");
  variable<float, 4, 3> w("w", zeros());
  variable<float, 3> b("b", zeros());
  auto loss = mean(softmax_cross_entropy(relu(matmul(x, w) + b) * 0.5f, label));
  auto train = adagrad(0.1).minimize(loss);
  session s;
  s.run(initialize_all());
  s.run(loss, train, x = ndarray<float, dyn, 4>(2), label = ndarray<std::int32_t, dyn>{0, 2});
}
