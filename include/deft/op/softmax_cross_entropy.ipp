// SPDX-License-Identifier: Apache-2.0
// deft/op/softmax_cross_entropy.ipp: shape rules of the loss and of its gradient.
#pragma once
#include <deft/op/softmax_cross_entropy.hpp>

namespace deft {

ext::tensor_type op::softmax_cross_entropy::infer(std::span<const ext::tensor_type> in) const {
  const auto &logits = in[0], &labels = in[1];
  if (!ext::is_floating(logits.type))
    ext::fail(errc::invalid_argument, "[softmax_cross_entropy] is not defined for ", logits.type);
  bool sparse = labels.shape.rank() == logits.shape.rank() - 1;
  dims loss;
  if (sparse && is_floating(labels.type) && shape(logits.shape, labels.shape, loss))
    ext::fail(errc::invalid_argument,
              "[softmax_cross_entropy] expects classes as int32 or int64, or probabilities of the "
              "logits' shape, and got ",
              labels, " for ", logits, ": use cast<std::int32_t>(labels) if these are classes");
  if (!shape(logits.shape, labels.shape, loss) ||
      (sparse ? labels.type != dtype::int32 && labels.type != dtype::int64
              : labels.type != logits.type))
    ext::fail(
        errc::invalid_argument,
        "[softmax_cross_entropy] expects labels like the logits, or a class (int32, int64) per "
        "row, and got ",
        labels, " for ", logits);
  return {loss, logits.type};
}

std::array<ext::tensor_type, 2> op::softmax_cross_entropy_grad::infer(
    std::span<const ext::tensor_type> in) const {
  const ext::tensor_type loss = softmax_cross_entropy().infer(in.first(2)), &dz = in[2];
  if (dz.type != loss.type || (dz.shape.rank() != 0 && !ext::may_equal(dz.shape, loss.shape)))
    ext::fail(errc::invalid_argument, "[", name, "] expects a value per row (", loss, "), and got ",
              dz);
  return {in[0], loss};
}

}  // namespace deft
