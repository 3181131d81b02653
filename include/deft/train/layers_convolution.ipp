// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_convolution.ipp: the variables of a convolution.
#pragma once
#include <deft/op/add.hpp>
#include <deft/train/layers_convolution.hpp>

namespace deft {

any_tensor conv2d(const any_tensor& x, std::int64_t filters, const dims& size,
                  std::string_view name, const conv2d_layer_options& options,
                  const conv2d_options& windows, ext::source_location w) {
  const detail::layer_scope s{"conv2d", name, options.shared, w};
  const ext::location_scope on_behalf(w);
  const auto in_graph = as_default(graph_of(x));
  const std::int64_t channels = detail::layer_features(s, x, 4);
  if (filters < 1 || size.rank() != 2 || size[0] < 1 || size[1] < 1)
    detail::refuse_layer(
        s, x,
        ext::str("expects filters, and their height and width, and got ", filters, " of ", size));
  any_tensor y = conv2d(x,
                        any_tensor(detail::layer_weights(
                            s, "kernel", {{size[0], size[1], channels, filters}, x.type()},
                            options.initializer, options.regularizer)),
                        windows, w);
  if (options.bias)
    y = y + any_tensor(detail::layer_variable(
                s, "bias", {{filters}, x.type()},
                options.bias_initializer ? *options.bias_initializer : zeros()));
  return options.activation(y);
}

}  // namespace deft
