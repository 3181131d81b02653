// SPDX-License-Identifier: Apache-2.0
// deft/op/softmax_cross_entropy.ipp: shape rules of the loss, of its gradient, and of both.
#pragma once
#include <deft/op/softmax_cross_entropy.hpp>

namespace deft {

std::array<ext::tensor_type, 3> op::softmax_cross_entropy::infer(
    std::span<const ext::tensor_type> in) const {
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
  const ext::tensor_type row{loss, logits.type};
  return {row, row, row};
}

namespace {

void expect_rows(std::string_view op, const ext::tensor_type& rows, const ext::tensor_type& given) {
  if (given.type != rows.type || !ext::may_equal(given.shape, rows.shape))
    ext::fail(errc::invalid_argument, "[", op, "] expects a value per row (", rows, "), and got ",
              given);
}

}  // namespace

ext::tensor_type op::softmax_cross_entropy_grad::infer(std::span<const ext::tensor_type> in) const {
  const auto rows = softmax_cross_entropy().infer(in.first(2));
  for (std::size_t i = 2; i < 5; ++i) expect_rows(name, rows[0], in[i]);
  return in[0];
}

std::array<ext::tensor_type, 4> op::softmax_cross_entropy_with_grad::infer(
    std::span<const ext::tensor_type> in) const {
  const auto rows = softmax_cross_entropy().infer(in.first(2));
  if (in[2] != ext::tensor_type{{}, rows[0].type}) expect_rows(name, rows[0], in[2]);
  return {rows[0], rows[1], rows[2], in[0]};
}

}  // namespace deft
