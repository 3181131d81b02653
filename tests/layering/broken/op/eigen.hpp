// SPDX-License-Identifier: Apache-2.0
// deft/op/eigen.hpp: breaks the rules.
#pragma once
#include <Eigen/Core>
