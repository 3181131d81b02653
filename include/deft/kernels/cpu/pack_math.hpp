// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/pack_math.hpp: core/num.hpp's arithmetic on packs and masks.
#pragma once
#include <deft/kernels/cpu/pack.hpp>

namespace deft::ext::cpu::detail {

// Bits as floats and back, as half_rules asks for them.
template <int N>
DEFT_ALWAYS_INLINE vec<float, N> as_floats(vec<std::uint32_t, N> bits) {
  return reinterpret_cast<vec<float, N>>(bits);
}
template <int N>
DEFT_ALWAYS_INLINE vec<std::uint32_t, N> as_bits(vec<float, N> v) {
  return reinterpret_cast<vec<std::uint32_t, N>>(v);
}

// Of one register of float16, where there are instructions for it. They keep the bits of a NaN.
#ifdef __F16C__
DEFT_ALWAYS_INLINE vec<float, 8> from_float16(vec<std::uint16_t, 8> bits) {
  return reinterpret_cast<vec<float, 8>>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(bits)));
}
DEFT_ALWAYS_INLINE vec<std::uint16_t, 8> to_float16(vec<float, 8> v) {
  return reinterpret_cast<vec<std::uint16_t, 8>>(
      _mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
}
#endif
#ifdef EIGEN_VECTORIZE_AVX512
DEFT_ALWAYS_INLINE vec<float, 16> from_float16(vec<std::uint16_t, 16> bits) {
  return reinterpret_cast<vec<float, 16>>(_mm512_cvtph_ps(reinterpret_cast<__m256i>(bits)));
}
DEFT_ALWAYS_INLINE vec<std::uint16_t, 16> to_float16(vec<float, 16> v) {
  return reinterpret_cast<vec<std::uint16_t, 16>>(
      _mm512_cvtps_ph(reinterpret_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT));
}
#endif
template <int N>
concept float16_registers = requires(vec<float, N> v) {
  to_float16(v);
};
template <int N, int Count>
struct half_registers {
  static constexpr int width = N;
  vec<std::uint16_t, N> v[std::size_t{Count}];
};

/// The values of bfloat16 or float16.
template <class T, int L>
DEFT_ALWAYS_INLINE pack<float, L> from_half(const pack<T, L>& p) {
  using R = pack<float, L>;
  constexpr int N = R::width;
  R r;
  each_register<R>([&](auto i) DEFT_INLINED {
    if constexpr (std::is_same_v<T, bfloat16>)
      r.v[i] = as_floats<N>(half_rules::from_bfloat16(take<std::uint32_t, N, i>(p)));
    else if constexpr (float16_registers<N>)
      r.v[i] = from_float16(take<std::uint16_t, N, i>(p));
    else
      r.v[i] = as_floats<N>(
          half_rules::from_float16(take<std::uint32_t, N, i>(p), as_floats<N>, as_bits<N>));
  });
  return r;
}

/// Rounded once: doubles each by itself, integers by way of float.
template <class T, class From, int L>
DEFT_ALWAYS_INLINE pack<T, L> to_half(const pack<From, L>& p) {
  constexpr int N = pack<float, L>::width;
  if constexpr (std::is_same_v<From, double>) {
    double from[std::size_t{L}];
    T to[std::size_t{L}];
    store(from, p);
    for (std::size_t i = 0; i < std::size_t{L}; ++i) to[i] = from[i];
    return load<T, L>(to);
  } else if constexpr (!std::is_same_v<From, float>) {
    return to_half<T>(num::cast<float>(p));
  } else if constexpr (std::is_same_v<T, float16> && float16_registers<N>) {
    half_registers<N, L / N> bits;
    each_index<L / N>([&](auto i) DEFT_INLINED {
      const vec<float, N> x = p.v[i], nan = vec<float, N>{} + not_a_number<float>;
      bits.v[i] = to_float16(x == x ? x : nan);
    });
    return convert<pack<T, L>>(bits);
  } else {
    return convert<pack<T, L>>(each<pack<std::uint32_t, L>>(
        [](auto x) DEFT_INLINED {
          if constexpr (std::is_same_v<T, bfloat16>)
            return half_rules::to_bfloat16(as_bits<N>(x));
          else
            return half_rules::to_float16(as_bits<N>(x), as_floats<N>, as_bits<N>);
        },
        p));
  }
}

}  // namespace deft::ext::cpu::detail

namespace deft::ext::num {

namespace detail {

/// There is no instruction that divides a whole register of integers.
template <class T, class V, class F>
DEFT_ALWAYS_INLINE V lane_by_lane(V a, V b, F f) {
  for (std::size_t i = 0; i < sizeof a / sizeof a[0]; ++i) a[i] = f(T(a[i]), T(b[i])).v;
  return a;
}

}  // namespace detail

template <element T, int L>
struct math<cpu::pack<T, L>> {
  using V = cpu::pack<T, L>;
  using M = cpu::mask<sizeof(T), L>;
  static constexpr bool floating = is_floating_type<T>;
  // Integers wrap: computed without sign.
  using U = cpu::vec<typename std::conditional_t<floating, std::type_identity<T>,
                                                 std::make_unsigned<cpu::stored<T>>>::type,
                     V::width>;
  using R = cpu::vec<cpu::stored<T>, V::width>;
  using P = cpu::packet<T, V::width>;  // for floating T

  static DEFT_ALWAYS_INLINE V add(V a, V b) {
    return map(
        [](auto x, auto y) DEFT_INLINED {
          return reinterpret_cast<R>(reinterpret_cast<U>(x) + reinterpret_cast<U>(y));
        },
        a, b);
  }
  static DEFT_ALWAYS_INLINE V sub(V a, V b) {
    return map(
        [](auto x, auto y) DEFT_INLINED {
          return reinterpret_cast<R>(reinterpret_cast<U>(x) - reinterpret_cast<U>(y));
        },
        a, b);
  }
  static DEFT_ALWAYS_INLINE V mul(V a, V b) {
    if constexpr (floating)
      return map([](auto x, auto y) DEFT_INLINED { return cpu::rounded(x * y); }, a, b);
    else
      return map(
          [](auto x, auto y) DEFT_INLINED {
            return reinterpret_cast<R>(reinterpret_cast<U>(x) * reinterpret_cast<U>(y));
          },
          a, b);
  }
  static DEFT_ALWAYS_INLINE V div(V a, V b) {
    if constexpr (floating)
      return map([](auto x, auto y) DEFT_INLINED { return x / y; }, a, b);
    else
      return map([](auto x, auto y)
                     DEFT_INLINED { return detail::lane_by_lane<T>(x, y, math<lane<T>>::div); },
                 a, b);
  }
  static DEFT_ALWAYS_INLINE V mod(V a, V b) {
    return map([](auto x, auto y)
                   DEFT_INLINED { return detail::lane_by_lane<T>(x, y, math<lane<T>>::mod); },
               a, b);
  }
  static DEFT_ALWAYS_INLINE V neg(V a) {
    return map([](auto x) DEFT_INLINED { return reinterpret_cast<R>(-reinterpret_cast<U>(x)); }, a);
  }
  static DEFT_ALWAYS_INLINE V exp(V a) {
    return map([](auto x) DEFT_INLINED { return P::exp(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V expm1(V a) {
    return map([](auto x) DEFT_INLINED { return P::expm1(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V log(V a) {
    return map([](auto x) DEFT_INLINED { return P::log(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V log1p(V a) {
    return map([](auto x) DEFT_INLINED { return P::log1p(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V tanh(V a) {
    return map([](auto x) DEFT_INLINED { return P::tanh(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V erf(V a) {
    return map([](auto x) DEFT_INLINED { return P::erf(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V erfcx(V a) {
    return map([](auto x) DEFT_INLINED { return P::erfcx(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V sin(V a) {
    return map([](auto x) DEFT_INLINED { return P::sin(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V cos(V a) {
    return map([](auto x) DEFT_INLINED { return P::cos(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V sqrt(V a) {
    return map([](auto x) DEFT_INLINED { return P::sqrt(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V pow(V a, V b) {
    return map([](auto x, auto y) DEFT_INLINED { return P::pow(x, y); }, a, b);
  }
  static DEFT_ALWAYS_INLINE V floor(V a) {
    return map([](auto x) DEFT_INLINED { return P::floor(x); }, a);
  }
  static DEFT_ALWAYS_INLINE V abs(V a) {
    if constexpr (floating)
      return map([](auto x) DEFT_INLINED { return P::abs(x); }, a);
    else if constexpr (!element_type<T>::is_signed)
      return a;
    else
      return select_pack(less(a, 0), neg(a), a);
  }
  // pmax and pmin give the first operand where either is NaN, or NaN at once.
  static DEFT_ALWAYS_INLINE V maximum(V a, V b) {
    if constexpr (floating)
      return map([](auto x, auto y) DEFT_INLINED { return y != y ? y : P::max(x, y); }, a, b);
    else
      return map([](auto x, auto y) DEFT_INLINED { return y > x ? y : x; }, a, b);
  }
  static DEFT_ALWAYS_INLINE V minimum(V a, V b) {
    if constexpr (floating)
      return map([](auto x, auto y) DEFT_INLINED { return y != y ? y : P::min(x, y); }, a, b);
    else
      return map([](auto x, auto y) DEFT_INLINED { return y < x ? y : x; }, a, b);
  }
  static DEFT_ALWAYS_INLINE M less(V a, V b) {
    return compare([](auto x, auto y) DEFT_INLINED { return x < y; }, a, b);
  }
  static DEFT_ALWAYS_INLINE M less_equal(V a, V b) {
    return compare([](auto x, auto y) DEFT_INLINED { return x <= y; }, a, b);
  }
  static DEFT_ALWAYS_INLINE M equal(V a, V b) {
    return compare([](auto x, auto y) DEFT_INLINED { return x == y; }, a, b);
  }

  // Values of bool.
  static DEFT_ALWAYS_INLINE V logical_and(V a, V b) {
    return map([](auto x, auto y) DEFT_INLINED { return x & y; }, a, b);
  }
  static DEFT_ALWAYS_INLINE V logical_or(V a, V b) {
    return map([](auto x, auto y) DEFT_INLINED { return x | y; }, a, b);
  }
  static DEFT_ALWAYS_INLINE V logical_not(V a) {
    return map([](auto x) DEFT_INLINED { return x ^ 1; }, a);
  }
  template <class W>
  static DEFT_ALWAYS_INLINE W select(V c, W a, W b) {
    return math<W>::select_pack(cpu::to_mask<sizeof(element_t<W>)>(c), a, b);
  }

  /// The same rules as cast_scalar.
  template <element To>
  static DEFT_ALWAYS_INLINE auto cast(V v) {
    using Result = cpu::pack<To, L>;
    if constexpr (std::is_same_v<To, T>)
      return v;
    else if constexpr (std::is_same_v<To, bool>)
      return v != 0;
    else if constexpr (is_half_type<To>)
      return cpu::detail::to_half<To>(v);
    else if constexpr (is_integer_type<To> && floating) {
      const M below = v <= least_of<To>, above = v >= greatest_of<To>;
      const M inside = !(below || above || v != v);
      const Result r = cpu::detail::convert<Result>(num::select(inside, v, 0));
      return num::select(below, Result(least_of<To>),
                         num::select(above, Result(greatest_of<To>), r));
    } else
      return cpu::detail::convert<Result>(v);
  }

  static DEFT_ALWAYS_INLINE V select_pack(M m, V a, V b) {
    return cpu::detail::each<V>([](auto c, auto x, auto y)
                                    DEFT_INLINED { return reinterpret_cast<R>(c ? x : y); },
                                m, a, b);
  }

 private:
  template <class F, class... A>
  static DEFT_ALWAYS_INLINE V map(F f, const A&... a) {
    return cpu::detail::each<V>(f, a...);
  }
  template <class F>
  static DEFT_ALWAYS_INLINE M compare(F f, V a, V b) {
    return cpu::detail::each<M>(f, a, b);
  }
};

/// Of the types of 16 bits, which are not computed with.
template <element T, int L>
requires is_half_type<T>
struct math<cpu::pack<T, L>> {
  using V = cpu::pack<T, L>;

  template <element To>
  static DEFT_ALWAYS_INLINE auto cast(V v) {
    if constexpr (std::is_same_v<To, T>)
      return v;
    else
      return num::cast<To>(cpu::detail::from_half(v));
  }
};

template <int S, int L>
struct math<cpu::mask<S, L>> {
  using V = cpu::mask<S, L>;
  static DEFT_ALWAYS_INLINE V logical_and(V a, V b) {
    return cpu::detail::each<V>([](auto x, auto y) DEFT_INLINED { return x & y; }, a, b);
  }
  static DEFT_ALWAYS_INLINE V logical_or(V a, V b) {
    return cpu::detail::each<V>([](auto x, auto y) DEFT_INLINED { return x | y; }, a, b);
  }
  static DEFT_ALWAYS_INLINE V logical_not(V a) {
    return cpu::detail::each<V>([](auto x) DEFT_INLINED { return ~x; }, a);
  }
  template <class W>
  static DEFT_ALWAYS_INLINE W select(V c, W a, W b) {
    return math<W>::select_pack(cpu::resize<sizeof(element_t<W>)>(c), a, b);
  }
};

}  // namespace deft::ext::num
