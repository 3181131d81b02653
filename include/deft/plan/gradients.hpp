// SPDX-License-Identifier: Apache-2.0
// deft/plan/gradients.hpp: reverse-mode differentiation of the graph.
#pragma once
#include <deft/expr/tensor.hpp>
#include <tuple>
#include <vector>

namespace deft {

namespace plan {

/// d loss / d x for every x, summed over the elements of `loss`; an empty any_tensor where `loss`
/// does not depend on x. Throws invalid_argument if `loss` is not floating, unimplemented if an
/// operation on the way has no gradient.
std::vector<any_tensor> gradients(const any_tensor& loss, std::span<const any_tensor> xs);

/// Zeros of the dtype and shape of `x`.
any_tensor zeros_like(const any_tensor& x);

/// What an operation's `grad` sees of the node that it differentiates.
class gradient_view {
 public:
  gradient_view(const node& n, std::span<const any_tensor> outputs) : node_(n), outputs_(outputs) {}

  any_tensor input(std::size_t i) const { return any_tensor(node_.inputs[i]); }
  std::size_t inputs() const { return node_.inputs.size(); }
  /// The node's value; the fused node's, where this is the last operation of one.
  const any_tensor& output_tensor(std::size_t i) const { return outputs_[i]; }
  const node& of() const { return node_; }

 private:
  const node& node_;
  std::span<const any_tensor> outputs_;
};

}  // namespace plan

/// The gradients of `loss` with respect to `x…`, typed like them; zeros where `loss` does not
/// depend on one. As in TensorFlow, a loss that is no scalar counts as the sum of its elements.
/// Throws unimplemented if an operation on the way has no gradient.
template <expression L, expression... X>
auto gradients(const L& loss, const X&... x) {
  const any_tensor xs[] = {any_tensor(x)...};
  std::vector<any_tensor> d = plan::gradients(any_tensor(loss), xs);
  std::size_t i = 0;
  auto take = [&]<class Y>(const Y& y) {
    any_tensor g = std::move(d[i++]);
    if (!g.valid()) g = plan::zeros_like(any_tensor(y));
    if constexpr (typed_expression<Y>)
      return tensor_of<value_type_of<Y>, shape_type_of<Y>>(g);
    else
      return g;
  };
  return std::tuple<decltype(take(x))...>{take(x)...};
}

}  // namespace deft
