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

// Which of Philox's words an element is made of. So many blocks are a group, whose elements lie
// word by word: element k of block l is number 16 k + l of its group.
inline constexpr int group_blocks = 16;

/// A float takes a word, a double two.
template <class T>
requires(sizeof(T) == 4 || sizeof(T) == 8) inline constexpr int words_each = sizeof(T) / 4;
/// Elements of a block.
template <class T>
inline constexpr int block_elements = 4 / words_each<T>;
template <class T>
inline constexpr int group_elements = block_elements<T>* group_blocks;

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
/// The random bits of element k of a block, as a number: 24 of a float's word, 26 of each of a
/// double's. `part(w, drop)`: word w without its lowest bits, as a T.
template <class T, class Part>
DEFT_HD DEFT_ALWAYS_INLINE constexpr auto bits_of(Part part, int k) {
  if constexpr (words_each<T> == 1)
    return part(k, 8);
  else
    return part(k, 6) * 0x1p26 + part(k + 2, 6);  // exact, joined or not
}
/// What the bits count in.
template <class T>
inline constexpr T unit = words_each<T> == 1 ? T(0x1p-24) : T(0x1p-52);

/// Bits with 0 in their middle: odd multiples of unit<T>, between -1 and 1.
template <class T, num::value V>
DEFT_HD DEFT_ALWAYS_INLINE V symmetric(V bits) {
  constexpr T half = T(0.5) / unit<T>;
  return (bits - half + T(0.5)) * (2 * unit<T>);
}

// Numbers as an operation wants them, from the bits, computed in T.

template <class T>
struct uniform_numbers {
  using type = T;
  using op_type = op::random_uniform;
  T scale, shift, least, greatest;

  uniform_numbers() = default;
  explicit uniform_numbers(const op::random_uniform& o)
      : scale(static_cast<T>(o.high - o.low)),
        shift(static_cast<T>(o.low)),
        least(o.first<T>()),
        greatest(o.last<T>()) {}
  template <num::value V>
  DEFT_HD DEFT_ALWAYS_INLINE V operator()(V bits) const {
    const V x = bits * unit<T> * scale + shift;  // rounding may leave the interval
    return num::select(x < least, V(least), num::select(x > greatest, V(greatest), x));
  }
};

/// The percentage point of the normal distribution. Of doubles p = (bits + 1/2) unit: 0 must not
/// come out. Of floats, whose bits do not take the half, by the distance from the middle.
template <class T>
struct normal_numbers {
  using type = T;
  using op_type = op::random_normal;
  T scale, shift;

  normal_numbers() = default;
  explicit normal_numbers(const op::random_normal& o)
      : scale(static_cast<T>(o.stddev)), shift(static_cast<T>(o.mean)) {}
  template <num::value V>
  DEFT_HD DEFT_ALWAYS_INLINE V operator()(V bits) const {
    if constexpr (words_each<T> == 1)
      return num::symmetric_normal_of(symmetric<T>(bits)) * scale + shift;
    else
      return num::normal_of((bits + 0.5) * unit<T>) * scale + shift;
  }
};

template <class T>
struct truncated_numbers {
  using type = T;
  using op_type = op::truncated_normal;
  static constexpr double below = 0.022750131948179195;  // two deviations under the mean
  T scale;

  truncated_numbers() = default;
  explicit truncated_numbers(const op::truncated_normal& o) : scale(static_cast<T>(o.stddev)) {}
  template <num::value V>
  DEFT_HD DEFT_ALWAYS_INLINE V operator()(V bits) const {
    if constexpr (words_each<T> == 1) {
      V z = num::symmetric_normal_of(symmetric<T>(bits) * static_cast<T>(1 - 2 * below));
      z = num::select(z > 2.f, V(2.f), num::select(z < -2.f, V(-2.f), z));
      return z * scale + 0;
    } else
      return num::normal_of(bits * unit<T> * (1 - 2 * below) + below) * scale + 0;
  }
};

}  // namespace deft::ext::draws

namespace deft::ext::spec {

template <template <class> class Numbers>
class random : public kernel_spec<typename Numbers<float>::op_type, floating_dtypes, by_result> {};

using random_kernels = kernel_list<random<draws::uniform_numbers>, random<draws::normal_numbers>,
                                   random<draws::truncated_numbers>>;

}  // namespace deft::ext::spec
