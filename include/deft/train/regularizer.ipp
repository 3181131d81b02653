// SPDX-License-Identifier: Apache-2.0
// deft/train/regularizer.ipp: penalties as expressions.
#pragma once
#include <cmath>
#include <deft/op/abs.hpp>
#include <deft/op/square.hpp>
#include <deft/op/sum.hpp>
#include <deft/train/regularizer.hpp>

namespace deft {

any_tensor regularizer::operator()(const any_tensor& weights, ext::source_location w) const {
  if (!ext::is_floating(weights.type()))
    throw error(
        errc::invalid_argument,
        ext::str("[regularizer] expects floating weights, and got ", weights.handle().type()),
        name_of(weights), w);
  if (!make_) throw error(errc::invalid_argument, "[regularizer] it is empty", {}, w);
  const ext::location_scope on_behalf(w);
  return make_(weights);
}

namespace {
void check_scale(std::string_view name, double scale, ext::source_location w) {
  if (!(scale >= 0) || std::isinf(scale))
    throw error(errc::invalid_argument,
                ext::str("[", name, "] expects a scale that is not negative, and got ", scale), {},
                w);
}
}  // namespace

regularizer l1_regularizer(double scale, ext::source_location w) {
  check_scale("l1_regularizer", scale, w);
  return regularizer([scale](const any_tensor& x) { return any_tensor(sum(abs(x)) * scale); });
}
regularizer l2_regularizer(double scale, ext::source_location w) {
  check_scale("l2_regularizer", scale, w);
  return regularizer(
      [scale](const any_tensor& x) { return any_tensor(sum(square(x)) * (scale / 2)); });
}

}  // namespace deft
