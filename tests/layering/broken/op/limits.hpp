// SPDX-License-Identifier: Apache-2.0
// deft/op/limits.hpp: asks the standard library of an element type.
#pragma once
#include <deft/core/config.hpp>
template <class T>
constexpr T least = std::numeric_limits<T>::lowest();
