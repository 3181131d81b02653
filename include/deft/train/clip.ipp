// SPDX-License-Identifier: Apache-2.0
// deft/train/clip.ipp: limits of values and norms.
#pragma once
#include <cmath>
#include <deft/op/catalog.hpp>
#include <deft/train/clip.hpp>
#include <limits>

namespace deft {
namespace {

template <class F>
std::vector<gradient_of_variable> each(std::vector<gradient_of_variable> gradients, F f) {
  for (auto& [v, g] : gradients)
    if (g.valid()) g = f(g);
  return gradients;
}

/// The sum of the squares of a gradient's elements, in double, as those of float may overflow.
any_tensor sum_of_squares(const any_tensor& g) {
  const auto s = detail::slices_of(g);
  const any_tensor once = s ? any_tensor(ext::sum_rows(s->rows, s->indices, false)) : g;
  return sum(square(cast(once, dtype::float64)));
}

void expect_limit(std::string_view name, const hyperparameter& norm, ext::source_location w) {
  if (const double* n = norm.number(); n && (!(*n > 0) || std::isinf(*n)))
    throw error(errc::invalid_argument,
                ext::str("[", name, "] expects a finite norm above 0, and got ", *n), {}, w);
}

}  // namespace

any_tensor clip_by_norm(const any_tensor& x, const hyperparameter& norm, ext::source_location w) {
  expect_limit("clip_by_norm", norm, w);
  if (!ext::is_floating(x.type()))
    throw error(errc::invalid_argument,
                ext::str("[clip_by_norm] expects a floating tensor, and got ", x.handle().type()),
                name_of(x), w);
  const ext::location_scope on_behalf(w);
  const auto in_graph = as_default(graph_of(x));
  const any_tensor limit = norm.as(dtype::float64);
  // No division by the norm of zeros, whose gradient is finite, too.
  const any_tensor size = sqrt(maximum(sum_of_squares(x), std::numeric_limits<double>::min()));
  const any_tensor scale = cast(limit / maximum(size, limit), x.type());
  return detail::each_value(x, [&](const any_tensor& v) { return any_tensor(v * scale); });
}

any_tensor global_norm(const std::vector<gradient_of_variable>& gradients, ext::source_location w) {
  const ext::location_scope on_behalf(w);
  any_tensor squares;
  for (const auto& [v, g] : gradients) {
    if (!g.valid()) continue;
    const any_tensor more = sum_of_squares(g);
    squares = squares.valid() ? squares + more : more;
  }
  if (!squares.valid())
    throw error(errc::invalid_argument, "[global_norm] there are no gradients", {}, w);
  return sqrt(squares);
}

std::vector<gradient_of_variable> clip_by_global_norm(std::vector<gradient_of_variable> gradients,
                                                      const hyperparameter& norm,
                                                      ext::source_location w) {
  expect_limit("clip_by_global_norm", norm, w);
  const any_tensor whole = global_norm(gradients, w);
  const ext::location_scope on_behalf(w);
  const auto in_graph = as_default(graph_of(whole));
  const any_tensor limit = norm.as(dtype::float64);
  // The difference is 0, or NaN if the norm is not finite.
  const any_tensor scale = limit / maximum(whole, limit) + (whole - whole);
  return each(std::move(gradients), [&](const any_tensor& g) {
    return detail::each_value(
        g, [&](const any_tensor& v) { return any_tensor(v * cast(scale, v.type())); });
  });
}

std::vector<gradient_of_variable> clip_by_value(std::vector<gradient_of_variable> gradients,
                                                double low, double high, ext::source_location w) {
  return each(std::move(gradients), [&](const any_tensor& g) {
    auto s = detail::slices_of(g);
    // What is not in a slice is 0, and may be outside of the limits.
    if (!s || low > 0 || high < 0) return any_tensor(clip_by_value(g, low, high, w));
    s->rows = clip_by_value(ext::sum_rows(s->rows, s->indices, false), low, high, w);
    return s->tensor();
  });
}

std::vector<gradient_of_variable> clip_by_norm(std::vector<gradient_of_variable> gradients,
                                               const hyperparameter& norm, ext::source_location w) {
  return each(std::move(gradients), [&](const any_tensor& g) { return clip_by_norm(g, norm, w); });
}

}  // namespace deft
