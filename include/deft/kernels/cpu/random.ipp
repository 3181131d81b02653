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
template <int L>
struct split_pack {
  pack<double, L> exponent, mantissa;
};
template <int L>
DEFT_ALWAYS_INLINE split_pack<L> split(pack<double, L> x) {
  using V = pack<double, L>;
  pack<std::int64_t, L> exponent;
  V mantissa;
  for (int i = 0; i < V::count; ++i) {
    auto b = __builtin_bit_cast(vec<std::int64_t, V::width>, x.v[i]);
    exponent.v[i] = (b >> 52) - 1023;
    mantissa.v[i] = __builtin_bit_cast(
        vec<double, V::width>, (b & ((std::int64_t{1} << 52) - 1)) | (std::int64_t{1023} << 52));
  }
  return {num::cast<double>(exponent), mantissa};
}

namespace {

using draws::group_blocks, draws::group_words;

/// The words of group `g`: word w of block 16 g + l stands at 16 w + l.
void draw(std::uint64_t g, std::uint64_t key, std::uint64_t step, std::uint32_t* words) {
  constexpr int blocks = group_blocks;
  std::uint32_t c0[blocks], c1[blocks], c2[blocks], c3[blocks];
  const std::uint64_t first = g * blocks;
  for (int l = 0; l < blocks; ++l) {
    c0[l] = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(l);
    c1[l] = static_cast<std::uint32_t>(first >> 32);  // a group never crosses 2^32 blocks
    c2[l] = static_cast<std::uint32_t>(step);
    c3[l] = static_cast<std::uint32_t>(step >> 32);
  }
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    for (int l = 0; l < blocks; ++l) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0[l],
                          p1 = std::uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
      c1[l] = static_cast<std::uint32_t>(p1);
      c2[l] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
      c3[l] = static_cast<std::uint32_t>(p0);
    }
  }
  std::memcpy(words, c0, sizeof c0);
  std::memcpy(words + blocks, c1, sizeof c1);
  std::memcpy(words + 2 * blocks, c2, sizeof c2);
  std::memcpy(words + 3 * blocks, c3, sizeof c3);
}

template <template <class> class Numbers, class T>
class kernel_of<spec::random<Numbers>, T> final : public spec::random<Numbers> {
  static constexpr bool uniform = std::is_same_v<Numbers<T>, draws::uniform_numbers<T>>;
  static constexpr std::int64_t group_elements = draws::group_elements<T>;
  static constexpr int L = register_bytes / 8;

  void ready() override {
    number_ = Numbers<T>(this->op_);
    elements_ = this->out().elements();
    this->cost_ = 20 + static_cast<double>(elements_) * (uniform ? 0.5 : 3) * sizeof(T) / 4;
  }
  void run(const kernel_call& c) override {
    T* to = static_cast<T*>(c.out[0]);
    const std::uint64_t step = this->op_.every_step && c.step ? c.step->draw : 0;
    constexpr std::int64_t chunk = group_elements * 64;
    parallel_chunks((elements_ + chunk - 1) / chunk, this->cost_, [&](std::int64_t p) {
      for (std::int64_t i = p * chunk; i < std::min(elements_, (p + 1) * chunk);
           i += group_elements) {
        if (elements_ - i >= group_elements) {
          group(i / group_elements, step, to + i);
        } else {
          T last[group_elements];
          group(i / group_elements, step, last);
          std::memcpy(to + i, last, static_cast<std::size_t>(elements_ - i) * sizeof(T));
        }
      }
    });
  }

  void group(std::int64_t g, std::uint64_t step, T* to) const {
    std::uint32_t words[group_words];
    draw(static_cast<std::uint64_t>(g), this->op_.key, step, words);
    for (int i = 0; i < group_elements; i += L) {
      double bits[L];
      for (int l = 0; l < L; ++l) bits[l] = draws::bits_of<T>(words, i + l, group_words / 2);
      store(to + i, number_(load<double, L>(bits)));
    }
  }

  Numbers<T> number_{};
  std::int64_t elements_ = 0;
};

}  // namespace
}  // namespace deft::ext::cpu
