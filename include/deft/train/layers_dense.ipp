// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_dense.ipp: fully connected layers with variables of their own.
#pragma once
#include <deft/op/reshape.hpp>
#include <deft/train/layers_dense.hpp>

namespace deft {

any_tensor dense(const any_tensor& x, std::int64_t units, std::string_view name,
                 const dense_options& options, ext::source_location w) {
  const detail::layer_scope s{"dense", name, options.shared, w};
  const ext::location_scope on_behalf(w);
  const auto in_graph = as_default(graph_of(x));
  const std::int64_t in = detail::layer_features(s, x, 2);
  if (units < 1) detail::refuse_layer(s, x, ext::str("expects units, and got ", units));
  const any_variable kernel = detail::layer_weights(s, "kernel", {{in, units}, x.type()},
                                                    options.initializer, options.regularizer);
  any_tensor y = matmul(x.rank() == 2 ? x : reshape(x, {dyn, in}, w), any_tensor(kernel), w);
  if (options.bias)
    y = y + any_tensor(detail::layer_variable(
                s, "bias", {{units}, x.type()},
                options.bias_initializer ? *options.bias_initializer : zeros()));
  if (x.rank() > 2) y = detail::reshape_rows(y, x, units, w);
  return options.activation(y);
}

}  // namespace deft
