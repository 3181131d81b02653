// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/random_bits.hpp: elements of random tensors: each is a function of key, counter
// and its number alone, and its bits are the same on every device.
#pragma once
#include <algorithm>
#include <deft/core/normal.hpp>
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/op/random_normal.hpp>
#include <deft/op/random_uniform.hpp>
#include <deft/op/truncated_normal.hpp>

namespace deft::ext::draws {

// Which of Philox's words an element is made of. So many blocks are a group, and lie word by word:
// word w of block l of a group is its word number 16 w + l.
inline constexpr int group_blocks = 16;
inline constexpr int group_words = 4 * group_blocks;

/// A float takes a word; a double two, the second 32 words on.
template <class T>
requires(sizeof(T) == 4 || sizeof(T) == 8) inline constexpr int words_each = sizeof(T) / 4;
template <class T>
inline constexpr int group_elements = group_words / words_each<T>;
/// Elements that a block has all words of.
template <class T>
inline constexpr int block_elements = 4 / words_each<T>;

/// Element k < block_elements of a block, within the tensor.
template <class T>
DEFT_HD constexpr std::int64_t element_of(std::int64_t block, int k) {
  return block / group_blocks * group_elements<T> + k * group_blocks + block % group_blocks;
}
/// Blocks that n elements are made of.
template <class T>
constexpr std::int64_t blocks_of(std::int64_t n) {
  const std::int64_t rest = n % group_elements<T>;
  return n / group_elements<T> * group_blocks + std::min<std::int64_t>(rest, group_blocks);
}
/// The random bits of element i of a group or block, as an integer: 24 of a float's word, 26 of
/// each of a double's. `words`: of the group, `apart` = 32; or of the block, `apart` = 2.
template <class T>
DEFT_HD DEFT_ALWAYS_INLINE constexpr double bits_of(const std::uint32_t* words, int i, int apart) {
  auto part = [&](int w, int drop) DEFT_INLINED {
    return static_cast<double>(static_cast<std::int32_t>(words[w] >> drop));
  };
  if constexpr (words_each<T> == 1)
    return static_cast<void>(apart), part(i, 8);
  else
    return part(i, 6) * 0x1p26 + part(i + apart, 6);  // exact, joined or not
}
/// What the bits count in.
template <class T>
inline constexpr double unit = words_each<T> == 1 ? 0x1p-24 : 0x1p-52;

// Numbers as an operation wants them, from the bits as doubles.

template <class T>
struct uniform_numbers {
  using type = T;
  using op_type = op::random_uniform;
  double scale, shift;
  T least, greatest;

  uniform_numbers() = default;
  explicit uniform_numbers(const op::random_uniform& o)
      : scale(o.high - o.low), shift(o.low), least(o.first<T>()), greatest(o.last<T>()) {}
  template <num::value V>
  DEFT_HD DEFT_ALWAYS_INLINE auto operator()(V bits) const {
    const auto x = num::cast<T>(bits * unit<T> * scale + shift);
    using R = std::remove_const_t<decltype(x)>;  // rounding may leave the interval
    return num::select(x < least, R(least), num::select(x > greatest, R(greatest), x));
  }
};

template <class T>
struct normal_numbers {
  using type = T;
  using op_type = op::random_normal;
  double scale, shift;

  normal_numbers() = default;
  explicit normal_numbers(const op::random_normal& o) : scale(o.stddev), shift(o.mean) {}
  template <num::value V>
  DEFT_HD DEFT_ALWAYS_INLINE auto operator()(V bits) const {
    // In the middle of its interval: 0 must not come out.
    return num::cast<T>(num::normal_of((bits + 0.5) * unit<T>) * scale + shift);
  }
};

template <class T>
struct truncated_numbers {
  using type = T;
  using op_type = op::truncated_normal;
  static constexpr double below = 0.022750131948179195;  // two deviations under the mean
  double scale;

  truncated_numbers() = default;
  explicit truncated_numbers(const op::truncated_normal& o) : scale(o.stddev) {}
  template <num::value V>
  DEFT_HD DEFT_ALWAYS_INLINE auto operator()(V bits) const {
    return num::cast<T>(num::normal_of(bits * unit<T> * (1 - 2 * below) + below) * scale + 0);
  }
};

}  // namespace deft::ext::draws

namespace deft::ext::spec {

template <template <class> class Numbers>
class random : public kernel_spec<typename Numbers<float>::op_type, floating_dtypes, by_result> {};

using random_kernels = kernel_list<random<draws::uniform_numbers>, random<draws::normal_numbers>,
                                   random<draws::truncated_numbers>>;

}  // namespace deft::ext::spec
