// SPDX-License-Identifier: Apache-2.0
// The same as cpp_side.cpp, compiled by nvcc; and every body of the catalog as device code.
#include <deft/core/num_lane.hpp>
#include <deft/deft.hpp>

#include "own_operations.hpp"
#include "sides.hpp"

namespace {
#include "train.ipp"

/// Op's body on lanes of T, for what the operation accepts.
template <class Op, class T>
__device__ void apply_body(const T* in, T*& out) {
  using V = deft::ext::num::lane<T>;
  const V x = in[0], y = in[1];
  if constexpr (std::is_same_v<Op, deft::op::cast>) {
    *out++ = static_cast<T>(deft::op::cast_to<float>()(x).v);
    *out++ = static_cast<T>(deft::op::cast_to<double>()(x).v);
    *out++ = static_cast<T>(deft::op::cast_to<std::int32_t>()(x).v);
    *out++ = static_cast<T>(deft::op::cast_to<std::int64_t>()(x).v);
    *out++ = static_cast<T>(deft::op::cast_to<std::uint8_t>()(x).v);
    *out++ = static_cast<T>(deft::op::cast_to<bool>()(x).v);
  } else if constexpr (requires { Op::typing_rule; }) {
    if constexpr (deft::ext::accepts(Op::typing_rule, deft::dtype_of<T>)) {
      if constexpr (Op::arity == 1)
        *out++ = static_cast<T>(Op()(x).v);
      else if constexpr (Op::arity == 2)
        *out++ = static_cast<T>(Op()(x, y).v);
      else
        *out++ = static_cast<T>(Op()(deft::ext::num::lane<bool>(in[2]), x, y).v);
    }
  }
}

template <class T, class... Op>
__global__ void every_body(deft::op::op_list<Op...>, const T* in, T* out) {
  (apply_body<Op>(in, out), ...);
}
template __global__ void every_body(deft::op::catalog, const float*, float*);
template __global__ void every_body(deft::op::catalog, const double*, double*);
template __global__ void every_body(deft::op::catalog, const std::int32_t*, std::int32_t*);
template __global__ void every_body(deft::op::catalog, const std::int64_t*, std::int64_t*);
template __global__ void every_body(deft::op::catalog, const std::uint8_t*, std::uint8_t*);
template __global__ void every_body(deft::op::catalog, const bool*, bool*);
}  // namespace

std::vector<float> deft::testing::train_by_cuda_side() { return train(); }

// An operation that only this file has. Nobody calls it: that it is written here is enough.
deft::any_tensor swish_in_cuda_side(const deft::tensor<float, deft::dyn>& x) {
  return testing::make_swish(x) * 2;
}
