// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_embedding.ipp: the table of an embedding.
#pragma once
#include <deft/op/random_uniform.hpp>
#include <deft/train/layers_embedding.hpp>

namespace deft {

any_tensor embedding(const any_tensor& ids, std::int64_t rows, std::int64_t width,
                     std::string_view name, const embedding_options& options,
                     ext::source_location w) {
  const detail::layer_scope s{"embedding", name, options.shared, w};
  const ext::location_scope on_behalf(w);
  const auto in_graph = as_default(graph_of(ids));
  if (rows < 1 || width < 1)
    detail::refuse_layer(s, ids, ext::str("expects a table of rows, and got ", dims{rows, width}));
  const any_variable table = detail::layer_variable(
      s, "table", {{rows, width}, options.type},
      options.initializer ? *options.initializer : initializer(random_uniform(-0.05, 0.05)));
  return gather(any_tensor(table), ids, w);
}

}  // namespace deft
