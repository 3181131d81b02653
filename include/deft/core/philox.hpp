// SPDX-License-Identifier: Apache-2.0
// deft/core/philox.hpp: counter-based random numbers, Philox 4x32-10.
#pragma once
#include <array>
#include <cstdint>
#include <deft/core/config.hpp>

namespace deft::ext {

/// Four random words for a counter under a key: a pure function, so that the numbers are the same
/// on every thread, task and device. Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
/// easy as 1, 2, 3" (2011); agrees with Random123's philox4x32 of ten rounds.
DEFT_HD constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key) {
  std::uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0, p1 = std::uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

/// A float in [0, 1) with 24 random bits.
DEFT_HD constexpr float unit_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

/// Philox's words one after another, for host code that draws in order: `seed` is the key,
/// `stream` the upper half of the counter.
class philox_stream {
 public:
  explicit constexpr philox_stream(std::uint64_t seed, std::uint64_t stream = 0)
      : key_{low(seed), high(seed)}, counter_{0, 0, low(stream), high(stream)} {}

  constexpr std::uint32_t word() {
    if (used_ == 4) {
      words_ = philox(counter_, key_);
      used_ = 0;
      if (++counter_[0] == 0) ++counter_[1];
    }
    return words_[used_++];
  }
  /// A float in [0, 1).
  constexpr float uniform() { return unit_float(word()); }
  /// A float in [from, to).
  constexpr float uniform(float from, float to) { return from + (to - from) * uniform(); }
  /// An integer in [0, n), all equally likely: Lemire, "Fast random integer generation in an
  /// interval".
  constexpr std::uint64_t below(std::uint64_t n) {
    if (n <= 1) return 0;
    __extension__ using wide = unsigned __int128;
    for (;;) {
      std::uint64_t first = word();
      wide m = static_cast<wide>(first << 32 | word()) * n;
      auto rest = static_cast<std::uint64_t>(m);
      if (rest >= n || rest >= (std::uint64_t{0} - n) % n)
        return static_cast<std::uint64_t>(m >> 64);
    }
  }

 private:
  static constexpr std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
  static constexpr std::uint32_t high(std::uint64_t v) {
    return static_cast<std::uint32_t>(v >> 32);
  }

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_, words_{};
  unsigned used_ = 4;
};

}  // namespace deft::ext
