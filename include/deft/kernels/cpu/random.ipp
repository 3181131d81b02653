// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/random.ipp: random tensors.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/pack.hpp>
#include <deft/kernels/spec/random_bits.hpp>
#include <deft/kernels/team.hpp>

namespace deft::ext::cpu {

/// num::split of packs.
template <class T, int L>
struct split_pack {
  pack<T, L> exponent, mantissa;
};
template <class T, int L>
DEFT_ALWAYS_INLINE split_pack<T, L> split(const pack<T, L>& x) {
  using V = pack<T, L>;
  using I = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  constexpr int width = sizeof(T) == 4 ? 23 : 52;
  constexpr I bias = sizeof(T) == 4 ? 127 : 1023;
  split_pack<T, L> s;
  detail::each_register<V>([&](auto i) DEFT_INLINED {
    const auto b = __builtin_bit_cast(vec<I, V::width>, x.v[i]);
    s.exponent.v[i] = __builtin_convertvector((b >> width) - bias, vec<T, V::width>);
    s.mantissa.v[i] =
        __builtin_bit_cast(vec<T, V::width>, (b & ((I{1} << width) - 1)) | (bias << width));
  });
  return s;
}

namespace {

using draws::group_blocks;

/// The words of a group of blocks: c[w] has word w of each.
class word_group {
 public:
  DEFT_ALWAYS_INLINE word_group(std::uint64_t group, std::uint64_t key, std::uint64_t step) {
    const std::uint64_t first = group * group_blocks;
    std::uint32_t lowest[group_blocks];
    for (int l = 0; l < group_blocks; ++l) lowest[l] = low(first) + static_cast<std::uint32_t>(l);
    each([&](auto i) DEFT_INLINED {
      std::memcpy(&c_[0][i], lowest + i * width, sizeof c_[0][i]);
      // A group never crosses 2^32 blocks.
      c_[1][i] = words{} + high(first), c_[2][i] = words{} + low(step);
      c_[3][i] = words{} + high(step);
    });
    std::uint32_t k0 = low(key), k1 = high(key);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85)
      each([&](auto i) DEFT_INLINED {
        const product a = multiply(c_[0][i], 0xD2511F53), b = multiply(c_[2][i], 0xCD9E8D57);
        c_[0][i] = b.high ^ c_[1][i] ^ k0, c_[1][i] = b.low;
        c_[2][i] = a.high ^ c_[3][i] ^ k1, c_[3][i] = a.low;
      });
  }
  /// Word w of each block without its lowest bits, as a T.
  template <class T>
  DEFT_ALWAYS_INLINE pack<T, group_blocks> part(int w, int drop) const {
    numbers p;
    each([&](auto i) DEFT_INLINED {
      p.v[i] = __builtin_bit_cast(vec<std::int32_t, width>, c_[w][i] >> drop);
    });
    return num::cast<T>(p);
  }

 private:
  using numbers = pack<std::int32_t, group_blocks>;
  static constexpr int width = numbers::width, count = numbers::count;
  using words = vec<std::uint32_t, width>;
  struct product {
    words high, low;
  };

  static constexpr std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
  static constexpr std::uint32_t high(std::uint64_t v) {
    return static_cast<std::uint32_t>(v >> 32);
  }
  template <class F>
  static DEFT_ALWAYS_INLINE void each(F f) {
    detail::each_register<numbers>(f);
  }
  /// Processors multiply every second word: these, and those between them.
  static DEFT_ALWAYS_INLINE product multiply(words a, std::uint32_t by) {
    if constexpr (width >= 4) {
      using wide = vec<std::uint64_t, width / 2>;
      const wide x = __builtin_bit_cast(wide, a);
      const wide even = multiply_even(x, by), odd = multiply_even(x >> 32, by);
      constexpr std::uint64_t upper = ~std::uint64_t{0} << 32;
      return {__builtin_bit_cast(words, (even >> 32) | (odd & upper)),
              __builtin_bit_cast(words, (even & ~upper) | odd << 32)};
    } else {
      product p;
      for (int l = 0; l < width; ++l) {
        const std::uint64_t wide = std::uint64_t{by} * a[l];
        p.high[l] = high(wide), p.low[l] = low(wide);
      }
      return p;
    }
  }
  /// The products of the lower halves.
  template <class W>
  static DEFT_ALWAYS_INLINE W multiply_even(W a, std::uint32_t by) {
#ifdef EIGEN_VECTORIZE_AVX512
    if constexpr (sizeof(W) == 64)
      return __builtin_bit_cast(
          W, _mm512_mul_epu32(__builtin_bit_cast(__m512i, a), _mm512_set1_epi64(by)));
#endif
#ifdef EIGEN_VECTORIZE_AVX2
    if constexpr (sizeof(W) == 32)
      return __builtin_bit_cast(
          W, _mm256_mul_epu32(__builtin_bit_cast(__m256i, a), _mm256_set1_epi64x(by)));
#endif
#ifdef EIGEN_VECTORIZE_SSE
    if constexpr (sizeof(W) == 16)
      return __builtin_bit_cast(W,
                                _mm_mul_epu32(__builtin_bit_cast(__m128i, a), _mm_set1_epi64x(by)));
#endif
    return (a & 0xffffffff) * by;
  }

  words c_[4][std::size_t{count}];
};

template <template <class> class Numbers, class T>
class kernel_of<spec::random<Numbers>, T> final : public spec::random<Numbers> {
  static constexpr bool uniform = std::is_same_v<Numbers<T>, draws::uniform_numbers<T>>;
  static constexpr std::int64_t group_elements = draws::group_elements<T>;

  void ready() override {
    number_ = Numbers<T>(this->op_);
    elements_ = this->out().elements();
    const double each = (uniform ? 8 : sizeof(T) == 4 ? 24 : 160) * sizeof(T) / register_bytes;
    this->cost_ = 20 + static_cast<double>(elements_) * each;
  }
  void run(const kernel_call& c) override {
    T* to = static_cast<T*>(c.out[0]);
    const std::uint64_t step = this->op_.every_step && c.step ? c.step->draw : 0;
    constexpr std::int64_t chunk = group_elements * 64;
    parallel_chunks((elements_ + chunk - 1) / chunk, this->cost_, [&](std::int64_t p) {
      const std::int64_t end = std::min(elements_, (p + 1) * chunk);
      std::int64_t i = p * chunk;
      for (; i + group_elements <= end; i += group_elements)
        group(i / group_elements, step, to + i);
      if (i == end) return;
      T last[group_elements];
      group(i / group_elements, step, last);
      std::memcpy(to + i, last, static_cast<std::size_t>(end - i) * sizeof(T));
    });
  }

  void group(std::int64_t g, std::uint64_t step, T* to) const {
    const word_group words(static_cast<std::uint64_t>(g), this->op_.key, step);
    const auto part = [&](int w, int drop) DEFT_INLINED { return words.part<T>(w, drop); };
    for (int k = 0; k < draws::block_elements<T>; ++k)
      store(to + k * group_blocks, draws::bits_of<T>(part, k));
    // Two registers at a time: a polynomial of all would be long, and take long to compile.
    constexpr int some = std::min<int>(group_blocks, 2 * register_bytes / sizeof(T));
    for (std::int64_t i = 0; i < group_elements; i += some)
      store(to + i, number_(load<T, some>(to + i)));
  }

  Numbers<T> number_{};
  std::int64_t elements_ = 0;
};

}  // namespace
}  // namespace deft::ext::cpu
