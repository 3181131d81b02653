// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/empty_fold.hpp: what folds of no elements leave.
#pragma once
#include <cstdint>
#include <deft/core/element_type.hpp>

namespace deft::ext::gpu {

/// A sum, or a mean, of no elements.
template <class T>
struct of_nothing {
  T* to;
  T value;
  of_nothing(T* t, bool mean) : to(t), value(mean ? not_a_number<T> : T(0)) {}
  DEFT_HD void operator()(std::int64_t i) const { to[i] = value; }
};

}  // namespace deft::ext::gpu
