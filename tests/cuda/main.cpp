// SPDX-License-Identifier: Apache-2.0
// A model that a .cu file builds and trains, beside one that a .cpp file does, in one program that
// is linked in both orders: the same numbers. It needs no GPU.
#include <cstdio>

#include "sides.hpp"

int main() {
  const std::vector<float> cuda = deft::testing::train_by_cuda_side();
  const std::vector<float> cpp = deft::testing::train_by_cpp_side();
  if (cuda != cpp) {
    for (std::size_t i = 0; i < cuda.size(); ++i)
      std::printf("%zu: %.9g by nvcc, %.9g by the C++ compiler\n", i, cuda[i], cpp[i]);
    return 1;
  }
  if (!(cuda[19] < 0.9f * cuda[0])) {
    std::printf("the loss went from %g to %g\n", cuda[0], cuda[19]);
    return 1;
  }
  return 0;
}
