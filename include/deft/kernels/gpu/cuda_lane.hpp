// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda_lane.hpp: one lane on a GPU: num::lane, which here notes an integer
// division by zero where the host's would throw.
#pragma once
#include <deft/core/num_lane.hpp>

namespace deft::ext::gpu {

/// What has gone wrong in a lane.
enum class lane_fault : std::uint8_t { none, div, mod };

/// One T, and what went wrong in what it was computed from. Expressions without an integer division
/// carry a constant, which costs nothing.
template <element T>
struct number : num::operators<number<T>, number<bool>> {
  using element_type = T;
  using mask_type = number<bool>;
  T v;
  lane_fault fault = lane_fault::none;

  number() = default;
  template <class C>
  requires is_number_type<C> DEFT_HD constexpr number(C c) : v(static_cast<T>(c)) {}
  DEFT_HD constexpr number(num::lane<T> x, lane_fault f) : v(x.v), fault(f) {}
};

}  // namespace deft::ext::gpu

namespace deft::ext::num {

template <element T>
struct math<gpu::number<T>> {
  using V = gpu::number<T>;
  using L = lane<T>;
  using fault = gpu::lane_fault;

  static DEFT_HD constexpr L bare(const V& a) { return L(a.v); }
  template <element A, element B>
  static DEFT_HD constexpr fault either(const gpu::number<A>& a, const gpu::number<B>& b) {
    return a.fault != fault::none ? a.fault : b.fault;
  }

  static DEFT_HD constexpr V add(V a, V b) { return {bare(a) + bare(b), either(a, b)}; }
  static DEFT_HD constexpr V sub(V a, V b) { return {bare(a) - bare(b), either(a, b)}; }
  static DEFT_HD constexpr V mul(V a, V b) { return {bare(a) * bare(b), either(a, b)}; }
  static DEFT_HD constexpr V div(V a, V b) {
    if constexpr (is_integer_type<T>)
      if (b.v == 0) return {L(0), fault::div};
    return {bare(a) / bare(b), either(a, b)};
  }
  static DEFT_HD constexpr V mod(V a, V b) {
    if (b.v == 0) return {L(0), fault::mod};
    return {bare(a) % bare(b), either(a, b)};
  }
  static DEFT_HD constexpr V neg(V a) { return {-bare(a), a.fault}; }
  static DEFT_HD V exp(V a) { return {num::exp(bare(a)), a.fault}; }
  static DEFT_HD V expm1(V a) { return {num::expm1(bare(a)), a.fault}; }
  static DEFT_HD V log(V a) { return {num::log(bare(a)), a.fault}; }
  static DEFT_HD V log1p(V a) { return {num::log1p(bare(a)), a.fault}; }
  static DEFT_HD V tanh(V a) { return {num::tanh(bare(a)), a.fault}; }
  static DEFT_HD V erf(V a) { return {num::erf(bare(a)), a.fault}; }
  static DEFT_HD V erfcx(V a) { return {num::erfcx(bare(a)), a.fault}; }
  static DEFT_HD V sin(V a) { return {num::sin(bare(a)), a.fault}; }
  static DEFT_HD V cos(V a) { return {num::cos(bare(a)), a.fault}; }
  static DEFT_HD V sqrt(V a) { return {num::sqrt(bare(a)), a.fault}; }
  static DEFT_HD V pow(V a, V b) { return {num::pow(bare(a), bare(b)), either(a, b)}; }
  static DEFT_HD V floor(V a) { return {num::floor(bare(a)), a.fault}; }
  static DEFT_HD constexpr V abs(V a) { return {num::abs(bare(a)), a.fault}; }
  static DEFT_HD constexpr V maximum(V a, V b) {
    return {num::maximum(bare(a), bare(b)), either(a, b)};
  }
  static DEFT_HD constexpr V minimum(V a, V b) {
    return {num::minimum(bare(a), bare(b)), either(a, b)};
  }
  static DEFT_HD constexpr gpu::number<bool> less(V a, V b) {
    return {bare(a) < bare(b), either(a, b)};
  }
  static DEFT_HD constexpr gpu::number<bool> less_equal(V a, V b) {
    return {bare(a) <= bare(b), either(a, b)};
  }
  static DEFT_HD constexpr gpu::number<bool> equal(V a, V b) {
    return {bare(a) == bare(b), either(a, b)};
  }
  static DEFT_HD constexpr V logical_and(V a, V b) { return {bare(a) && bare(b), either(a, b)}; }
  static DEFT_HD constexpr V logical_or(V a, V b) { return {bare(a) || bare(b), either(a, b)}; }
  static DEFT_HD constexpr V logical_not(V a) { return {!bare(a), a.fault}; }
  /// Both sides are evaluated: a fault in either counts, as on the processor.
  template <class W>
  static DEFT_HD constexpr W select(V c, W a, W b) {
    W chosen = c.v ? a : b;
    chosen.fault = c.fault != fault::none ? c.fault : math<W>::either(a, b);
    return chosen;
  }
  template <element To>
  static DEFT_HD constexpr gpu::number<To> cast(V a) {
    return {num::cast<To>(bare(a)), a.fault};
  }
};

}  // namespace deft::ext::num
