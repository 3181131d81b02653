// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/reducers.hpp: how elements are folded.
#pragma once
#include <cstdint>
#include <deft/core/num_lane.hpp>
#include <deft/graph/op_def.hpp>
#include <limits>

namespace deft::ext::gpu {

/// Sums, where integers wrap. What leaves every value as it is, is a negative zero.
struct plus {
  template <class T>
  static DEFT_HD T neutral() {
    return is_floating_type<T> ? -T(0) : T(0);
  }
  template <class T>
  static DEFT_HD T combine(T a, T b) {
    return (num::lane<T>(a) + num::lane<T>(b)).v;
  }
};
/// The largest; NaN goes through.
struct largest {
  template <class T>
  static DEFT_HD T neutral() {
    return least_of<T>;
  }
  template <class T>
  static DEFT_HD T combine(T a, T b) {
    return num::maximum(num::lane<T>(a), num::lane<T>(b)).v;
  }
};
/// The smallest; NaN goes through.
struct smallest {
  template <class T>
  static DEFT_HD T neutral() {
    return greatest_of<T>;
  }
  template <class T>
  static DEFT_HD T combine(T a, T b) {
    return num::minimum(num::lane<T>(a), num::lane<T>(b)).v;
  }
};

/// How elements are folded, by the kind of reduction; a mean is a sum.
template <fold_kind Kind>
struct join_of {
  using type = plus;
};
template <>
struct join_of<fold_kind::max> {
  using type = largest;
};
template <>
struct join_of<fold_kind::min> {
  using type = smallest;
};

/// What is left of no elements.
template <class T>
struct of_nothing {
  T* to;
  T value;
  of_nothing(T* t, bool mean) : to(t), value(mean ? not_a_number<T> : T(0)) {}
  DEFT_HD void operator()(std::int64_t i) const { to[i] = value; }
};

}  // namespace deft::ext::gpu
