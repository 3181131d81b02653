// SPDX-License-Identifier: Apache-2.0
// tests/cuda/sides.hpp: what a .cu file that nvcc compiles and a .cpp file of the same program both
// do.
#pragma once
#include <vector>

namespace deft::testing {

/// The losses of a few steps of training, then the weights.
std::vector<float> train_by_cuda_side();
std::vector<float> train_by_cpp_side();

}  // namespace deft::testing
