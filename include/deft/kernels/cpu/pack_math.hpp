// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/pack_math.hpp: core/num.hpp's arithmetic on packs and masks.
#pragma once
#include <deft/kernels/cpu/pack.hpp>

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
