// SPDX-License-Identifier: Apache-2.0
// deft/op/softmax_cross_entropy.ipp: shape rules of the loss and of its gradient.
#pragma once
#include <deft/op/softmax_cross_entropy.hpp>

namespace deft {

std::array<tensor_type, 3> op::softmax_cross_entropy::infer(std::span<const tensor_type> in) const {
  const auto &logits = in[0], &labels = in[1];
  if (!is_floating(logits.type))
    fail(errc::invalid_argument, "[softmax_cross_entropy] is not defined for ", logits.type);
  bool sparse = labels.shape.rank() == logits.shape.rank() - 1;
  dims loss;
  if (!shape(logits.shape, labels.shape, loss) ||
      (sparse ? labels.type != dtype::int32 && labels.type != dtype::int64
              : labels.type != logits.type))
    fail(errc::invalid_argument,
         "[softmax_cross_entropy] expects labels like the logits, or a class (int32, int64) per "
         "row, and got ",
         labels, " for ", logits);
  const tensor_type row{loss, logits.type};
  return {row, row, row};
}

tensor_type op::softmax_cross_entropy_grad::infer(std::span<const tensor_type> in) const {
  const auto rows = softmax_cross_entropy().infer(in.first(2));
  for (std::size_t i = 2; i < 5; ++i)
    if (in[i].type != rows[0].type || !may_equal(in[i].shape, rows[0].shape))
      fail(errc::invalid_argument, "[softmax_cross_entropy_grad] expects a value per row (",
           rows[0], "), and got ", in[i]);
  return in[0];
}

}  // namespace deft
