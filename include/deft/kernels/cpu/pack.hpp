// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/pack.hpp: L lanes of T in vector registers, the values that elementwise kernels
// compute with.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <deft/core/num_lane.hpp>
#include <deft/kernels/cpu/packet.hpp>
#include <deft/kernels/vector_registers.hpp>
#include <utility>

namespace deft::ext::cpu {

static_assert((scalar_registers ? sizeof(float) : register_bytes) ==
                  sizeof(Eigen::internal::packet_traits<float>::type),
              "kernels/vector_registers.hpp and Eigen disagree on the registers of this machine");

namespace detail {

/// f(0), f(1), … f(N - 1), each number a constant: unrolled here, as the optimizer keeps no array
/// that a loop runs over in registers.
template <int N, class F>
DEFT_ALWAYS_INLINE void each_index(F f) {
  [&]<int... Index>(std::integer_sequence<int, Index...>) DEFT_INLINED {
    (f(std::integral_constant<int, Index>()), ...);
  }
  (std::make_integer_sequence<int, N>());
}
/// The same for the registers of P.
template <class P, class F>
DEFT_ALWAYS_INLINE void each_register(F f) {
  each_index<P::count>(f);
}

/// Of L lanes of so many bytes, those in one register.
template <int Bytes, int L>
inline constexpr int register_lanes = scalar_registers ? 1 : std::min(L, register_bytes / Bytes);

template <int Bytes>
using mask_lane = std::make_signed_t<integer_of<std::size_t{Bytes}>>;

/// N registers, copied one by one: several that are copied as a whole go through memory, and then
/// stay there.
template <class V, int N>
struct registers {
  V v[std::size_t{N}];

  registers() = default;
  DEFT_ALWAYS_INLINE registers(const registers& r) { *this = r; }
  DEFT_ALWAYS_INLINE registers& operator=(const registers& r) {
    each_index<N>([&](auto i) DEFT_INLINED { v[i] = r.v[i]; });
    return *this;
  }
};
template <class V>
struct registers<V, 1> {
  V v[1];
};

}  // namespace detail

/// How an element lies in memory, as a number: bool as a byte, 0 or 1; of bfloat16 and float16 the
/// bits.
template <class T>
using stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t,
                                  std::conditional_t<is_half_type<T>, std::uint16_t, T>>;
template <class T>
constexpr stored<T> to_stored(T v) {
  if constexpr (is_half_type<T>)
    return v.bits();
  else
    return v;
}

template <int S, int L>
struct mask;

/// L lanes of T, in one register or several.
template <element T, int L>
struct pack : num::operators<pack<T, L>, mask<sizeof(T), L>>,
              detail::registers<vec<stored<T>, detail::register_lanes<sizeof(T), L>>,
                                L / detail::register_lanes<sizeof(T), L>> {
  using element_type = T;
  using mask_type = mask<sizeof(T), L>;
  static constexpr int lanes = L;
  static constexpr int width = detail::register_lanes<sizeof(T), L>;
  static constexpr int count = L / width;

  pack() = default;
  /// The same in every lane.
  template <class C>
  requires is_number_type<C> DEFT_ALWAYS_INLINE pack(C c) {
    // Less zero, not plus: that keeps -0, and costs nothing.
    detail::each_register<pack>([&](auto i) DEFT_INLINED {
      this->v[i] = to_stored(static_cast<T>(c)) - vec<stored<T>, width>{};
    });
  }
};

/// What a comparison of two packs of S-byte lanes gives: all bits or none in each lane.
template <int S, int L>
struct mask : num::operators<mask<S, L>, mask<S, L>>,
              detail::registers<vec<detail::mask_lane<S>, detail::register_lanes<S, L>>,
                                L / detail::register_lanes<S, L>> {
  using element_type = bool;
  using mask_type = mask;
  static constexpr int lanes = L;
  static constexpr int width = detail::register_lanes<S, L>;
  static constexpr int count = L / width;
};

template <class P>
inline constexpr bool is_mask = false;
template <int S, int L>
inline constexpr bool is_mask<mask<S, L>> = true;

namespace detail {

/// `f` of each register of the operands.
template <class R, class F, class... P>
DEFT_ALWAYS_INLINE R each(F f, const P&... p) {
  R r;
  each_register<R>([&](auto i) DEFT_INLINED { r.v[i] = f(p.v[i]...); });
  return r;
}

/// The values of N lanes of T as U. Narrow integers become wide ones in steps, and then floating:
/// at once, each lane would be converted by itself.
template <class U, class T, int N>
DEFT_ALWAYS_INLINE vec<U, N> convert_register(vec<T, N> v) {
  if constexpr (sizeof(T) < (is_floating_type<U> ? sizeof(float) : sizeof(U) / 2)) {
    using wider = std::conditional_t<sizeof(T) == 1, std::int16_t, std::int32_t>;
    return convert_register<U, wider, N>(__builtin_convertvector(v, vec<wider, N>));
  } else {
    return __builtin_convertvector(v, vec<U, N>);
  }
}
/// Lanes `Part * N` to `(Part + 1) * N` of P's registers, as one register of U.
template <class U, int N, int Part, class P>
DEFT_ALWAYS_INLINE vec<U, N> take(const P& p) {
  using T = std::remove_cvref_t<decltype(p.v[0][0])>;
  if constexpr (P::width == N)
    return convert_register<U, T, N>(p.v[Part]);
  else if constexpr (P::width > N)
    return convert_register<U, T, N>(
        slice<Part * N % P::width>(p.v[Part * N / P::width], std::make_integer_sequence<int, N>()));
  else
    return join(take<U, N / 2, 2 * Part>(p), take<U, N / 2, 2 * Part + 1>(p),
                std::make_integer_sequence<int, N>());
}
template <class R, class P>
DEFT_ALWAYS_INLINE R convert(const P& p) {
  R r;
  using V = std::remove_reference_t<decltype(r.v[0])>;
  using U = std::remove_cvref_t<decltype(r.v[0][0])>;
  static_assert(std::is_same_v<V, vec<U, R::width>>);
  each_register<R>([&](auto i) DEFT_INLINED { r.v[i] = take<U, R::width, i>(p); });
  return r;
}

}  // namespace detail

// Memory.

template <element T, int L>
DEFT_ALWAYS_INLINE pack<T, L> load(const T* from) {
  using P = pack<T, L>;
  P p;
  // Not all at once: what is copied as a whole goes through memory.
  detail::each_register<P>([&](auto i) DEFT_INLINED {
    auto& v = p.v[i];
    std::memcpy(&v, from + i * P::width, sizeof v);
    // Whatever byte is there, it means true unless it is 0.
    if constexpr (std::is_same_v<T, bool>)
      v = reinterpret_cast<vec<std::uint8_t, P::width>>(v != 0) & 1;
  });
  return p;
}
template <element T, int L>
DEFT_ALWAYS_INLINE void store(T* to, const pack<T, L>& p) {
  using P = pack<T, L>;
  detail::each_register<P>([&](auto i) DEFT_INLINED {
    std::memcpy(static_cast<void*>(to + i * P::width), &p.v[i], sizeof p.v[i]);
  });
}
template <element T, int L>
DEFT_ALWAYS_INLINE pack<T, L> broadcast(T value) {
  return pack<T, L>(value);
}

/// The first n <= L elements, and `rest` in the lanes beyond.
template <int L, element T>
DEFT_ALWAYS_INLINE pack<T, L> load_some(const T* from, std::int64_t n, T rest) {
  using P = pack<T, L>;
  P p = broadcast<T, L>(rest);
#ifdef EIGEN_VECTORIZE_AVX512
  if constexpr (sizeof(P) == 64 && sizeof(T) >= 4) {
    const auto some = (1u << n) - 1;
    using V = vec<stored<T>, L>;
    if constexpr (sizeof(T) == 4)
      p.v[0] = __builtin_bit_cast(V, _mm512_mask_loadu_epi32(__builtin_bit_cast(__m512i, p.v[0]),
                                                             static_cast<__mmask16>(some), from));
    else
      p.v[0] = __builtin_bit_cast(V, _mm512_mask_loadu_epi64(__builtin_bit_cast(__m512i, p.v[0]),
                                                             static_cast<__mmask8>(some), from));
    return p;
  }
#elif defined(EIGEN_VECTORIZE_AVX2)
  if constexpr (sizeof(P) == 32 && sizeof(T) >= 4) {
    using V = vec<stored<T>, L>;
    __m256i some, loaded;
    if constexpr (sizeof(T) == 4) {
      some = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                                _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
      loaded = _mm256_maskload_epi32(reinterpret_cast<const int*>(from), some);
    } else {
      some = _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
      loaded = _mm256_maskload_epi64(reinterpret_cast<const long long*>(from), some);
    }
    p.v[0] = __builtin_bit_cast(
        V, _mm256_blendv_epi8(__builtin_bit_cast(__m256i, p.v[0]), loaded, some));
    return p;
  }
#endif
  if constexpr (P::count == 1 && L <= 4 && sizeof(T) >= 4) {
    // In the register: a copy of so many bytes is a call.
#pragma GCC unroll 4
    for (int i = 0; i < L; ++i)
      if (n > i) p.v[0][i] = from[i];
    return p;
  }
  T lanes[std::size_t{L}];
  store(lanes, p);
  std::memcpy(lanes, from, static_cast<std::size_t>(n) * sizeof(T));
  return load<T, L>(lanes);
}
namespace detail {
/// The first n <= N lanes of a register, by halves: what masks they have is slow to store by on
/// some processors.
template <int N, class T, class V>
DEFT_ALWAYS_INLINE void store_lanes(T* to, V v, std::int64_t n) {
  if (n & N) std::memcpy(to, &v, sizeof v);
  if constexpr (N > 1) {
    auto half = slice<0>(v, std::make_integer_sequence<int, N / 2>());
    if (n & (N / 2)) {
      std::memcpy(to, &half, sizeof half);
      half = slice<N / 2>(v, std::make_integer_sequence<int, N / 2>());
      to += N / 2;
    }
    store_lanes<N / 2>(to, half, n & (N / 2 - 1));
  }
}
}  // namespace detail

template <element T, int L>
DEFT_ALWAYS_INLINE void store_some(T* to, const pack<T, L>& p, std::int64_t n) {
#ifdef EIGEN_VECTORIZE_AVX512
  if constexpr (sizeof(p) == 64 && sizeof(T) >= 4) {
    const auto some = (1u << n) - 1;
    if constexpr (sizeof(T) == 4)
      _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(some),
                               __builtin_bit_cast(__m512i, p.v[0]));
    else
      _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(some),
                               __builtin_bit_cast(__m512i, p.v[0]));
    return;
  }
#endif
  if constexpr (pack<T, L>::count == 1 && sizeof(T) >= 4) {
    detail::store_lanes<L>(to, p.v[0], n);
    return;
  }
  T lanes[std::size_t{L}];
  store(lanes, p);
  std::memcpy(to, lanes, static_cast<std::size_t>(n) * sizeof(T));
}

/// 0, 1, 2, … in the lanes.
template <element T, int L>
DEFT_ALWAYS_INLINE pack<T, L> lane_numbers() {
  static constexpr auto numbers = [] {
    std::array<T, std::size_t{L}> a{};
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(i);
    return a;
  }();
  return load<T, L>(numbers.data());
}

/// Lanes of another mask's width.
template <int To, int S, int L>
DEFT_ALWAYS_INLINE mask<To, L> resize(const mask<S, L>& m) {
  if constexpr (To == S)
    return m;
  else
    return detail::convert<mask<To, L>>(m);
}
/// A mask as values of bool, and back.
template <int S, int L>
DEFT_ALWAYS_INLINE pack<bool, L> to_bools(const mask<S, L>& m) {
  return detail::each<pack<bool, L>>(
      [](auto v)
          DEFT_INLINED { return reinterpret_cast<vec<std::uint8_t, mask<1, L>::width>>(v) & 1; },
      resize<1>(m));
}
template <int S, int L>
DEFT_ALWAYS_INLINE mask<S, L> to_mask(const pack<bool, L>& p) {
  return resize<S>(detail::each<mask<1, L>>([](auto v) DEFT_INLINED { return v != 0; }, p));
}
template <int S, int L, int From>
DEFT_ALWAYS_INLINE mask<S, L> to_mask(const mask<From, L>& m) {
  return resize<S>(m);
}

}  // namespace deft::ext::cpu

#include <deft/kernels/cpu/pack_math.hpp>

namespace deft::ext::cpu {

/// a * b + c, rounded once where the processor can.
template <element T, int L>
DEFT_ALWAYS_INLINE pack<T, L> multiply_add(const pack<T, L>& a, const pack<T, L>& b,
                                           const pack<T, L>& c) {
  if constexpr (is_floating_type<T>) {
    using P = packet<T, pack<T, L>::width>;
    return detail::each<pack<T, L>>(
        [](auto x, auto y, auto z) DEFT_INLINED { return P::madd(x, y, z); }, a, b, c);
  } else
    return a * b + c;
}
/// The same of single numbers.
template <element T>
DEFT_ALWAYS_INLINE T multiply_add(T a, T b, T c) {
  if constexpr (is_floating_type<T> && fused_multiply_add)
    return std::fma(a, b, c);
  else
    return (num::lane<T>(a) * b + c).v;
}

/// A row is folded into so many lanes side by side.
template <class T>
inline constexpr int fold_lanes = 4 * register_bytes / static_cast<int>(sizeof(T));

}  // namespace deft::ext::cpu
