// SPDX-License-Identifier: Apache-2.0
// deft/op/catalog.ipp: the catalog's records and gradients, for the graph.
#pragma once
#include <array>
#include <deft/expr/gradient.hpp>
#include <deft/op/catalog.hpp>

namespace deft::ext {

std::span<const op_def* const> catalog_ops() {
  static constexpr auto records = []<class... Op>(op::op_list<Op...>) {
    return std::array<const op_def*, sizeof...(Op)>{&record_of<Op>...};
  }(op::catalog());
  static const bool filled = [] {
    op::catalog::each([]<class Op>() { functions_of<Op>.gradient = detail::gradient_of<Op>(); });
    return true;
  }();
  static_cast<void>(filled);
  return records;
}

}  // namespace deft::ext
