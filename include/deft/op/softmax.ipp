// SPDX-License-Identifier: Apache-2.0
// deft/op/softmax.ipp: shape rule of softmax.
#pragma once
#include <deft/op/exp.hpp>
#include <deft/op/log.hpp>
#include <deft/op/log_softmax.hpp>
#include <deft/op/max.hpp>
#include <deft/op/pad.hpp>
#include <deft/op/stop_gradient.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/transpose.hpp>
#include <limits>

namespace deft {

ext::tensor_type op::softmax::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_floating(in[0].type))
    ext::fail(errc::invalid_argument, "[softmax] is not defined for ", in[0].type);
  if (in[0].shape.rank() < 1)
    ext::fail(errc::invalid_argument, "[softmax] expects a last axis, and got a scalar");
  return in[0];
}

namespace detail {
namespace {

int softmax_axis(std::string_view name, const any_tensor& x, const dims& given, source_location w) {
  const int axis = one_axis(name, x, given, w);
  expect_floating(name, x, w);
  return axis;
}

}  // namespace

any_tensor largest_along(const any_tensor& x, const axes& along, source_location w) {
  // One more element, less than all others, where there may be none.
  dims none, one;
  bool may_be_empty = false;
  for (int i = 0; i < x.rank(); ++i) {
    const bool more = along.value.contains(i) && (x.shape()[i] == dyn || x.shape()[i] == 0);
    may_be_empty |= more;
    none.push_back(0);
    one.push_back(more);
  }
  const any_tensor never_empty =
      may_be_empty ? pad(x, none, one, -std::numeric_limits<double>::infinity(), w) : x;
  return stop_gradient(max(never_empty, along, keepdims, w), w);
}

any_tensor add_softmax(const any_tensor& x, const dims& given, source_location w) {
  const int axis = softmax_axis("softmax", x, given, w);
  if (axis == x.rank() - 1) return softmax(x, w);
  // The operation's axis is the last: the two change places meanwhile.
  const axes swapped(swapped_with_last(x.rank(), axis));
  return transpose(softmax(transpose(x, swapped, w), w), swapped, w);
}

any_tensor add_log_softmax(const any_tensor& x, const dims& given, source_location w) {
  const int axis = softmax_axis("log_softmax", x, given, w);
  const axes along{axis};
  // What is taken off changes only the range.
  const any_tensor shifted = x - largest_along(x, along, w);
  return shifted - log(sum(exp(shifted, w), along, keepdims, w), w);
}

}  // namespace detail
}  // namespace deft
