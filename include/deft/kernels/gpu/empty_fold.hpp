// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/empty_fold.hpp: what folds of no elements leave.
#pragma once
#include <cstdint>
#include <deft/core/element_type.hpp>
#include <deft/kernels/spec/reducers.hpp>

namespace deft::ext::gpu {

/// A fold by How, or a mean, of no elements.
template <class T, class How>
struct of_nothing {
  T* to;
  T value;
  of_nothing(T* t, bool mean) : to(t), value(mean ? not_a_number<T> : How::template nothing<T>()) {}
  DEFT_HD void operator()(std::int64_t i) const { to[i] = value; }
};

}  // namespace deft::ext::gpu
