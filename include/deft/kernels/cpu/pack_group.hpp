// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/pack_group.hpp: packs side by side: the sums of a tile.
#pragma once
#include <deft/kernels/cpu/pack.hpp>

namespace deft::ext::cpu {

/// N packs.
template <element T, int L, int N>
struct pack_group {
  pack<T, L> v[N];

  pack_group(const pack_group& g) { *this = g; }
  pack_group& operator=(const pack_group& g) {
    detail::each_index<N>([&](auto i) DEFT_INLINED { v[i] = g.v[i]; });
    return *this;
  }
  explicit pack_group(T value) {
#pragma GCC unroll 16
    for (auto& p : v) p = broadcast<T, L>(value);
  }
  friend DEFT_ALWAYS_INLINE pack_group operator+(const pack_group& a, const pack_group& b) {
    pack_group c(a);
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) c.v[i] = c.v[i] + b.v[i];
    return c;
  }
};

}  // namespace deft::ext::cpu
