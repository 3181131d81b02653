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
  const int axis = given.size() == 1 ? normalize_axis(given[0], x.rank()) : -1;
  if (axis < 0)
    refuse_call(x,
                str("[", name, "] expects one axis of a tensor of rank ", x.rank(), ", and got ",
                    list_text(given)),
                w);
  if (!is_floating(x.type())) refuse_call(x, str("[", name, "] is not defined for ", x.type()), w);
  return axis;
}

/// x with one more element along `axis`, less than all others: its maximum is defined even if a run
/// finds no elements there, and is that of x if there are some.
any_tensor never_empty(const any_tensor& x, int axis, source_location w) {
  dims none, one;
  for (int i = 0; i < x.rank(); ++i) {
    none.push_back(0);
    one.push_back(i == axis);
  }
  return pad(x, none, one, -std::numeric_limits<double>::infinity(), w);
}

}  // namespace

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
  const std::int64_t extent = x.shape()[axis];
  if (extent == 0) return x;  // nothing has a maximum
  // What is taken off changes only the range, and has no gradient.
  const any_tensor largest = max(extent == dyn ? never_empty(x, axis, w) : x, along, keepdims, w);
  const any_tensor shifted = x - stop_gradient(largest, w);
  return shifted - log(sum(exp(shifted, w), along, keepdims, w), w);
}

}  // namespace detail
}  // namespace deft
