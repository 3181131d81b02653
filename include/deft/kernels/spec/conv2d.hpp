// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/conv2d.hpp: convolution and its gradients.
#pragma once
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/kernels/spec/windows.hpp>
#include <deft/op/conv2d.hpp>

namespace deft::ext {

/// A convolution of images (batch, height, width, channels) with filters (height, width, channels,
/// outputs), or one of its gradients. All of them are dense.
struct image_convolution : image_windows {
  enum kind { forward, input_gradient, filter_gradient };
  kind result = forward;
  std::int64_t outputs = 0;

  image_convolution() = default;
  image_convolution(kind of, const op::convolution& o, const dims& x, const dims& filter,
                    const dims& y)
      : image_windows(o, x, filter, y), result(of), outputs(y[3]) {}
  auto operator<=>(const image_convolution&) const = default;

  std::int64_t filter_elements() const { return depth() * outputs; }
};

namespace spec {

template <class Op>
class convolution : public kernel_spec<Op, floating_dtypes, by_input<0>> {
 protected:
  image_convolution what_;
};
class conv2d : public convolution<op::conv2d> {
 protected:
  void ready() override { what_ = {image_convolution::forward, op_, in(0), in(1), out()}; }
};
class conv2d_input_gradient : public convolution<op::conv2d_input_gradient> {
 protected:
  void ready() override { what_ = {image_convolution::input_gradient, op_, in(2), in(1), in(0)}; }
};
class conv2d_filter_gradient : public convolution<op::conv2d_filter_gradient> {
 protected:
  void ready() override { what_ = {image_convolution::filter_gradient, op_, in(1), in(2), in(0)}; }
};

using conv2d_kernels = kernel_list<conv2d, conv2d_input_gradient, conv2d_filter_gradient>;

}  // namespace spec
}  // namespace deft::ext
