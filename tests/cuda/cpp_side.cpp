// SPDX-License-Identifier: Apache-2.0
#include <deft/deft.hpp>

#include "sides.hpp"

namespace {
#include "train.ipp"
}

std::vector<float> deft::testing::train_by_cpp_side() { return train(); }
