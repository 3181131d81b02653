// SPDX-License-Identifier: Apache-2.0
// deft/op/compute_in.ipp: the scope of each thread.
#pragma once
#include <deft/op/compute_in.hpp>
#include <utility>

namespace deft {
namespace detail {
namespace {
constinit thread_local dtype computing_of_thread = dtype::none;
}  // namespace

dtype computing_in_force() { return computing_of_thread; }

any_tensor as_computed(const any_tensor& x, dtype type, source_location w) {
  const node& n = *x.handle().node;
  if (n.def == &record_of<op::cast> && n.inputs()[0].type().type == type)
    return any_tensor(n.inputs()[0]);
  return cast(x, type, w);
}

}  // namespace detail

ext::computing_scope::computing_scope(dtype type)
    : before_(std::exchange(deft::detail::computing_of_thread, type)) {}
ext::computing_scope::~computing_scope() { deft::detail::computing_of_thread = before_; }

}  // namespace deft
