// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_dropout.ipp: dropout as an expression.
#pragma once
#include <deft/op/greater_equal.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/where.hpp>
#include <deft/train/layers_dropout.hpp>

namespace deft::detail {

any_tensor add_dropout(const any_tensor& x, double rate, const dropout_options& options,
                       source_location w) {
  const layer_scope s{"dropout", {}, false, w};
  if (!is_floating(x.type()) || !(rate >= 0 && rate < 1))
    refuse_layer(s, x,
                 str("expects a floating tensor and a rate from 0 to less than 1, and got ",
                     x.handle().type(), " and ", rate));
  if (rate == 0) return x;
  const location_scope on_behalf(w);
  const auto in_graph = as_default(graph_of(x));
  return options.training.choose(
      [&] {
        const any_tensor drawn = random_uniform_like(x, 0, 1, {options.seed}, w);
        return any_tensor(where(drawn >= rate, x * (1 / (1 - rate)), 0));
      },
      [&] { return x; });
}

}  // namespace deft::detail
