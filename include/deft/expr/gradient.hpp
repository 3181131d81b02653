// SPDX-License-Identifier: Apache-2.0
// deft/expr/gradient.hpp: an operation's `grad` as the function in its record.
#pragma once
#include <deft/expr/any_tensor.hpp>
#include <deft/expr/op_record.hpp>
#include <span>
#include <tuple>
#include <vector>

namespace deft::detail {

/// The `n` of an operation's grad(n, dz).
template <class Op>
class node_view {
 public:
  node_view(const node& n, std::span<const output> outputs) : node_(n), outputs_(outputs) {}

  template <int Index>
  any_tensor in() const {
    return in(Index);
  }
  any_tensor in(std::size_t i) const { return any_tensor(node_.inputs()[i]); }
  std::size_t inputs() const { return node_.input_count; }
  /// The node's value; that of the fused node, if this is its last operation.
  template <int Index = 0>
  any_tensor out() const {
    return any_tensor(outputs_[Index]);
  }
  Op attr() const { return decode<Op>(node_.attributes); }

 private:
  const node& node_;
  std::span<const output> outputs_;
};

template <class Op>
concept differentiable = requires(const node_view<Op>& n, any_tensor dz) {
  Op::grad(n, dz);
};

inline output gradient_handle(const any_tensor& t) { return t.valid() ? t.handle() : output(); }
inline std::vector<output> gradient_handles(const any_tensor& t) { return {gradient_handle(t)}; }
inline std::vector<output> gradient_handles(const std::vector<any_tensor>& t) {
  std::vector<output> all;
  for (const auto& g : t) all.push_back(gradient_handle(g));
  return all;
}
template <class... T>
std::vector<output> gradient_handles(const std::tuple<T...>& t) {
  return std::apply(
      [](const auto&... g) { return std::vector<output>{gradient_handle(any_tensor(g))...}; }, t);
}

/// The gradient of Op as a record holds it; nullptr where it has none.
template <class Op>
constexpr gradient_function gradient_of() {
  if constexpr (differentiable<Op>)
    return [](const node& n, std::span<const output> outputs, const output& dz) {
      return gradient_handles(Op::grad(node_view<Op>(n, outputs), any_tensor(dz)));
    };
  else
    return nullptr;
}

}  // namespace deft::detail
