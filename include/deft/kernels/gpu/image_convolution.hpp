// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/image_convolution.hpp: a convolution, as a library is asked for it.
#pragma once
#include <deft/kernels/spec/windows.hpp>

namespace deft::ext::gpu {

/// A convolution of images (batch, height, width, channels) with filters (height, width, channels,
/// outputs), or one of its gradients. All of them are dense.
struct image_convolution {
  enum kind { forward, input_gradient, filter_gradient };
  kind result = forward;
  std::int64_t batch = 0, channels = 0, outputs = 0;
  window_axis height, width;

  std::int64_t filter_elements() const { return height.window * width.window * channels * outputs; }
  auto operator<=>(const image_convolution&) const = default;
};

}  // namespace deft::ext::gpu
