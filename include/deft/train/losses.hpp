// SPDX-License-Identifier: Apache-2.0
// deft/train/losses.hpp: losses that a graph collects, by name scope.
#pragma once
#include <deft/expr/tensor.hpp>
#include <string_view>
#include <vector>

namespace deft {

namespace detail {
void collect_loss(const any_tensor& loss, source_location w);
}

/// Adds a floating scalar to the losses of its graph, under the name scopes in force, and returns
/// it. One that is there already counts once. Throws invalid_argument if it is not a floating
/// scalar.
template <ext::expression L, class K = ext::kernels_for<L>>
auto add_loss(const L& loss, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<L>) {
    ext::tensor_of<ext::value_type_of<L>, ext::shape_type_of<L>> t(detail::any_lower<K>(loss, w));
    detail::collect_loss(any_tensor(t), w);
    return t;
  } else {
    const any_tensor t(loss);
    detail::collect_loss(t, w);
    return t;
  }
}

/// The losses that were added within the name scope `scope` ("tower_0", "tower_0/layer1"), in that
/// order; all of the graph for "".
std::vector<any_tensor> losses(std::string_view scope = "", graph g = current_graph());

/// The sum of these losses. Throws not_found if there are none.
any_tensor total_loss(std::string_view scope = "", ext::source_location w = ext::here());
/// The same as a `tensor<float>`, say, which keeps the type of what it is added to:
/// `auto loss = mean(error) + total_loss<float>();`. Throws invalid_argument, too, if the losses
/// have another dtype.
template <ext::element T>
tensor<T> total_loss(std::string_view scope = "", ext::source_location w = ext::here()) {
  static_assert(ext::is_floating_type<T>,
                "[total_loss] expects float or double, of which losses are");
  return tensor<T>(total_loss(scope, w), w);
}

}  // namespace deft
