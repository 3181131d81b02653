// SPDX-License-Identifier: Apache-2.0
#include <deft/deft.hpp>

deft::tensor<float, deft::dyn, 2> layer(const deft::placeholder<float, deft::dyn, 3>& x) {
  auto w = deft::constant({{1.f, 0.f}, {0.f, 1.f}, {1.f, 1.f}});
  return relu(matmul(x, w));
}
