// SPDX-License-Identifier: Apache-2.0
// deft/op/catalog.hpp: the one list of operations; registries, wire names, kernels of elementwise
// operations, gradients and test sweeps come from it.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/matmul.hpp>
#include <deft/op/relu.hpp>

namespace deft::op {

template <class... Op>
struct op_list {
  template <class F>
  static constexpr void each(F&& f) {
    (f.template operator()<Op>(), ...);
  }
  static constexpr std::size_t size = sizeof...(Op);
};

using catalog = op_list<add, cast, matmul, relu, where, greater>;

}  // namespace deft::op
