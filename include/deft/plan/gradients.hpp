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
/// operation between them has no gradient.
std::vector<any_tensor> gradients(const any_tensor& loss, std::span<const any_tensor> xs);

/// Zeros of the dtype and shape of `x`.
any_tensor zeros_like(const any_tensor& x);

}  // namespace plan

/// The gradients of `loss` with respect to `x…`, typed like them; zeros where `loss` does not
/// depend on one. As in TensorFlow, a loss that is not a scalar counts as the sum of its
/// elements. Throws invalid_argument if `loss` is not floating, unimplemented if an operation
/// between them has no gradient.
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
