// SPDX-License-Identifier: Apache-2.0
// deft/op/variance.ipp: variances in other operations.
#pragma once
#include <deft/op/cast.hpp>
#include <deft/op/div.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/sqrt.hpp>
#include <deft/op/square.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/variance.hpp>

namespace deft::detail {

namespace {

any_tensor variance_of(std::string_view name, const any_tensor& x, const axes* given, bool keep,
                       bool sample, source_location w) {
  expect_floating(name, x, w);
  const location_scope on_behalf(w);
  const axes over(axes_from_front(name, x, given, w));
  const any_tensor squares = square(x - mean(x, over, keepdims));
  const any_tensor v = keep ? mean(squares, over, keepdims) : mean(squares, over);
  if (!sample) return v;
  const any_tensor n = cast(size_of(x, over), dtype::float64);
  return v * cast(n / (n - 1), x.type());
}

}  // namespace

any_tensor add_variance(const any_tensor& x, const axes* given, bool keep, source_location w) {
  return variance_of("variance", x, given, keep, false, w);
}
any_tensor add_sample_variance(const any_tensor& x, const axes* given, bool keep,
                               source_location w) {
  return variance_of("variance", x, given, keep, true, w);
}
any_tensor add_deviation(const any_tensor& x, const axes* given, bool keep, source_location w) {
  return sqrt(variance_of("standard_deviation", x, given, keep, false, w), w);
}
any_tensor add_sample_deviation(const any_tensor& x, const axes* given, bool keep,
                                source_location w) {
  return sqrt(variance_of("standard_deviation", x, given, keep, true, w), w);
}

}  // namespace deft::detail
