// SPDX-License-Identifier: Apache-2.0
// deft/data/digits.hpp: generated images of digits, for programs without other data.
#pragma once
#include <cstdint>
#include <deft/core/ndarray.hpp>
#include <span>

namespace deft {

namespace ext {

/// Images of 28x28 grey values in [0, 1], white on black as in MNIST, one per row, and their
/// digits.
struct digit_set {
  ndarray<float, dyn, 784> images;
  ndarray<std::int32_t, dyn> labels;
};

/// Draws digit number `index` of the endless sequence given by `seed`, and returns the digit. One
/// of several glyphs is shifted, rotated, scaled, slanted and bent at random, drawn antialiased
/// with a random weight, and covered with noise. A pure function of its arguments.
int draw_digit(std::uint64_t seed, std::uint64_t index, std::span<float, 784> pixels);

}  // namespace ext

/// Draws the digits number `first` to `first + count - 1` of the sequence given by `seed`.
/// Throws invalid_argument if `count` is negative.
ext::digit_set draw_digits(std::int64_t count, std::uint64_t seed = 1, std::uint64_t first = 0);

}  // namespace deft
