// SPDX-License-Identifier: Apache-2.0
// What a file that includes deft/deft.hpp uses, the whole program has: swish of float here, and
// running sums.
#include "own_operations.hpp"

#include <deft/deft.hpp>

deft::ext::output used(const deft::tensor<float, deft::dyn>& x) {
  deft::tensor<float, deft::dyn> y = testing::make_running_sum(testing::make_swish(x));
  return y.handle();
}
