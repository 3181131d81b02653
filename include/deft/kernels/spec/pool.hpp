// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/pool.hpp: max_pool, avg_pool and their gradients.
#pragma once
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/kernels/spec/windows.hpp>
#include <deft/op/avg_pool.hpp>
#include <deft/op/max_pool.hpp>

namespace deft::ext::spec {

template <class Op>
class windows_kernel : public kernel_spec<Op, floating_dtypes, by_input<0>> {
 protected:
  void set_windows(const dims& x, const dims& y) { windows_ = {this->op_, x, this->op_.window, y}; }
  image_windows windows_;
};

template <class Op>
class pool : public windows_kernel<Op> {
 protected:
  static constexpr bool of_largest = std::is_same_v<Op, op::max_pool>;
  void ready() override { this->set_windows(this->in(0), this->out()); }
};
/// Of the result's gradient and x.
template <class Op>
class pool_gradient : public windows_kernel<Op> {
 protected:
  static constexpr bool of_largest = std::is_same_v<Op, op::max_pool_gradient>;
  void ready() override { this->set_windows(this->in(1), this->in(0)); }
};
/// Of each window of the first input, the element where that of the second has its largest.
class pool_pick : public windows_kernel<op::max_pool_pick> {
 protected:
  void ready() override { set_windows(in(1), out()); }
};

using pool_kernels =
    kernel_list<pool<op::max_pool>, pool_gradient<op::max_pool_gradient>, pool_pick,
                pool<op::avg_pool>, pool_gradient<op::avg_pool_gradient>>;

}  // namespace deft::ext::spec
