// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/packet.hpp: floating functions of one register. Sums and products are the
// compiler's own; what else there is comes from Eigen's packets, or is written here where Eigen's
// gives up accuracy at the ends of its range, or is too long for the compiler to inline at -O2.
#pragma once
#include <cmath>
#include <deft/core/erf.hpp>
#include <deft/core/num.hpp>
#include <deft/kernels/cpu/eigen.hpp>
#include <deft/kernels/vector_registers.hpp>
#include <limits>
#include <type_traits>
#include <utility>

namespace deft::ext::cpu {

namespace detail {
template <class T, int N>
struct vec_type {
  typedef T type __attribute__((vector_size(sizeof(T) * std::size_t{N})));
};
}  // namespace detail

/// The compiler's vector of N lanes: the same register as an Eigen packet of that size.
template <class T, int N>
using vec = typename detail::vec_type<T, N>::type;

namespace detail {
/// As many lanes of v from Offset on, and the lanes of a before those of b.
template <int Offset, class V, int... Index>
DEFT_ALWAYS_INLINE auto slice(V v, std::integer_sequence<int, Index...>) {
  return __builtin_shufflevector(v, v, (Offset + Index)...);
}
template <class V, int... Index>
DEFT_ALWAYS_INLINE auto join(V a, V b, std::integer_sequence<int, Index...>) {
  return __builtin_shufflevector(a, b, Index...);
}
}  // namespace detail

/// num::rounded of a register, which asm does not take as a vector where it is one element.
template <class V>
DEFT_ALWAYS_INLINE V rounded(V product) {
  if constexpr (sizeof product == sizeof product[0]) {
    product[0] = num::rounded(product[0]);
    return product;
  } else
    return num::rounded(product);
}

/// Functions of N lanes of float or double.
template <class T, int N>
struct packet {
  using type = typename Eigen::internal::find_best_packet<T, N>::type;
  using vec = cpu::vec<T, N>;
  using traits = Eigen::internal::packet_traits<T>;
  static constexpr bool single = std::is_same_v<T, float>;
  static_assert(single || std::is_same_v<T, double>, "what follows is for these two");
  /// Added to a number, leaves its nearest integer in the lowest bits.
  static constexpr T round_by = single ? T(0x1.8p23) : T(0x1.8p52);

  static DEFT_ALWAYS_INLINE type in(vec v) { return __builtin_bit_cast(type, v); }
  static DEFT_ALWAYS_INLINE vec out(type p) { return __builtin_bit_cast(vec, p); }
  static DEFT_ALWAYS_INLINE vec all(T c) { return c - vec{}; }
  template <class F>
  static DEFT_ALWAYS_INLINE vec lanewise(vec v, F f) {
    for (int i = 0; i < N; ++i) v[i] = f(v[i]);
    return v;
  }

  /// a * b + c, rounded once where the processor can.
  static DEFT_ALWAYS_INLINE vec madd(vec a, vec b, vec c) {
    return out(Eigen::internal::pmadd(in(a), in(b), in(c)));
  }
  static DEFT_ALWAYS_INLINE vec abs(vec v) { return out(Eigen::internal::pabs(in(v))); }
  /// The first operand where either is NaN, or NaN at once; of equal ones the first. NEON's own
  /// instructions, which Eigen uses, take -0 for less than 0.
  static DEFT_ALWAYS_INLINE vec max(vec a, vec b) {
#ifdef EIGEN_VECTORIZE_NEON
    return b > a ? b : a;
#else
    return out(Eigen::internal::pmax(in(a), in(b)));
#endif
  }
  static DEFT_ALWAYS_INLINE vec min(vec a, vec b) {
#ifdef EIGEN_VECTORIZE_NEON
    return b < a ? b : a;
#else
    return out(Eigen::internal::pmin(in(a), in(b)));
#endif
  }

  /// c[0] + c[1] x + c[2] x^2 + …
  template <std::size_t C>
  static DEFT_ALWAYS_INLINE vec polynomial(vec x, const T (&c)[C]) {
    vec y = all(c[C - 1]);
#pragma GCC unroll 16
    for (int i = static_cast<int>(C) - 2; i >= 0; --i) y = madd(y, x, all(c[i]));
    return y;
  }

  /// Within an ulp or two; infinity, zero and denormals where they are due.
  static DEFT_ALWAYS_INLINE vec exp(vec x) {
    const reduced e(max(min(x, all(single ? T(89) : T(710))), all(single ? T(-104) : T(-746))));
    return scaled(e.y + 1, e.n, e.t);
  }
  /// Likewise; accurate for small x.
  static DEFT_ALWAYS_INLINE vec expm1(vec x) {
    const reduced e(max(min(x, all(single ? T(89) : T(710))), all(-40)));  // where it is -1
    // Half of it, which does not overflow before all of it does.
    const vec half = scaled(all(T(0.5)), e.n, e.t);
    const vec y = 2 * madd(half, e.y, half - T(0.5));
    return x == 0 ? x : e.n == 0 ? e.y : y;
  }
  /// exp(x) = 2^n (1 + y), where |y| < 1/2 and n is the integer in the lowest bits of t.
  struct reduced {
    vec t, n, y;
    explicit DEFT_ALWAYS_INLINE reduced(vec x) {
      // x = n ln 2 + r.
      t = madd(x, all(T(1.4426950408889634)), all(round_by));
      n = t - round_by;
      // ln 2 in two parts, the first with few bits. Coefficients: Cephes, expf.c and exp.c.
      vec r = madd(n, all(single ? T(-0.693359375) : T(-6.93145751953125e-1)), x);
      r = madd(n, all(single ? T(2.12194440e-4) : T(-1.42860682030941723212e-6)), r);
      if constexpr (single) {
        constexpr T c[] = {5.0000001201e-1f, 1.6666665459e-1f, 4.1665795894e-2f,
                           8.3334519073e-3f, 1.3981999507e-3f, 1.9875691500e-4f};
        y = madd(polynomial(r, c), r * r, r);
      } else {
        constexpr T p[] = {9.99999999999999999910e-1, 3.02994407707441961300e-2,
                           1.26177193074810590878e-4};
        constexpr T q[] = {2.00000000000000000009e0, 2.27265548208155028766e-1,
                           2.52448340349684104192e-3, 3.00198505138664455042e-6};
        const vec rr = r * r, px = r * polynomial(rr, p);
        y = 2 * (px / (polynomial(rr, q) - px));
      }
    }
  };

  /// y times 2^n, where n is the integer in the lowest bits of t.
  static DEFT_ALWAYS_INLINE vec scaled(vec y, [[maybe_unused]] vec n, [[maybe_unused]] vec t) {
#ifdef EIGEN_VECTORIZE_AVX512
    if constexpr (sizeof(vec) == 64) {
      if constexpr (single)
        return out(_mm512_scalef_ps(in(y), in(n)));
      else
        return out(_mm512_scalef_pd(in(y), in(n)));
    } else
#endif
    {
      // In two steps, each of which a number can hold.
      using bits = std::conditional_t<single, std::int32_t, std::int64_t>;
      using ivec = cpu::vec<bits, N>;
      constexpr int mantissa = single ? 23 : 52, bias = single ? 127 : 1023;
      const ivec zero = __builtin_bit_cast(ivec, all(round_by));
      const ivec half = __builtin_bit_cast(ivec, madd(n, all(T(0.5)), all(round_by))) - zero;
      const ivec rest = __builtin_bit_cast(ivec, t) - zero - half;
      y *= __builtin_bit_cast(vec, (half + bias) << mantissa);
      return rounded(y * __builtin_bit_cast(vec, (rest + bias) << mantissa));
    }
  }

  /// Within a few ulps.
  static DEFT_ALWAYS_INLINE vec tanh(vec x) {
    if constexpr (single) {
      // x P(x^2) / Q(x^2): relative error 2e-8 up to 9, where tanh is 1; fitted for this file.
      constexpr T p[] = {1.774999976158142f, 0.23751327395439148f, 0.006204676814377308f,
                         3.658121931948699e-05f, 2.3704595619733482e-08f};
      constexpr T q[] = {1.774999976158142f, 0.8291796445846558f, 0.04593167454004288f,
                         0.000583201355766505f, 1.3803432921122294e-06f};
      x = max(min(x, all(9)), all(-9));
      const vec xx = x * x;
      const vec y = x * polynomial(xx, p) / polynomial(xx, q);
      return max(min(y, all(1)), all(-1));
    } else {
      // Cephes, tanh.c: a rational near 0, else 1 - 2 / (exp 2x + 1).
      constexpr T p[] = {-1.61468768441708447952e3, -9.92877231001918586564e1,
                         -9.64399179425052238628e-1};
      constexpr T q[] = {4.84406305325125486048e3, 2.23548839060100448583e3,
                         1.12811678491632931402e2, 1};
      const vec xx = x * x, a = x < 0 ? -x : x;
      const vec inner = madd(x * xx, polynomial(xx, p) / polynomial(xx, q), x);
      const vec outer = 1 - 2 / (exp(a + a) + 1);
      // Of -0, the sum in `inner` would be 0.
      return x == 0 ? x : a < 0.625 ? inner : x < 0 ? -outer : outer;
    }
  }

  /// Within a few ulps.
  static DEFT_ALWAYS_INLINE vec erf(vec x) {
    const vec xx = x * x, a = abs(x);
    const vec inner = x * polynomial(xx, erf_series<T>::near_zero);
    const vec outer = 1 - exp(-a * a) * erfcx(a);
    return a < 1 ? inner : x < 0 ? -outer : outer;
  }
  /// Likewise, of an x that is not negative.
  static DEFT_ALWAYS_INLINE vec erfcx(vec x) {
    using series = erf_series<T>;
    x = min(x, all(series::most));
    const vec q = (x - series::middle) / (x + series::middle);
    return polynomial(q, series::scaled) / (1 + (x + x));
  }

  static DEFT_ALWAYS_INLINE vec log(vec x) {
    if constexpr (N == 1 || !traits::HasLog)
      return lanewise(x, [](T t) DEFT_INLINED { return std::log(t); });
    else {  // Eigen's takes denormals for the smallest normal number
      const auto denormal = x < smallest_normal<T>;
      const vec y = out(Eigen::internal::plog(in(denormal ? x * T(0x1p64) : x)));
      return denormal ? y - T(44.361419555836499802) : y;
    }
  }
  static DEFT_ALWAYS_INLINE vec log1p(vec x) {
    if constexpr (N == 1 || !traits::HasLog)
      return lanewise(x, [](T t) DEFT_INLINED { return std::log1p(t); });
    else
      return out(Eigen::internal::generic_plog1p(in(x)));
  }

  /// Of doubles, which Eigen lacks, within three units in the last place.
  static DEFT_ALWAYS_INLINE vec sin(vec x) {
    if constexpr (N == 1)
      return lanewise(x, [](T t) DEFT_INLINED { return std::sin(t); });
    else if constexpr (traits::HasSin)
      return out(Eigen::internal::psin(in(x)));
    else if constexpr (single)
      return lanewise(x, [](T t) DEFT_INLINED { return std::sin(t); });
    else
      return sine<0>(x);
  }
  static DEFT_ALWAYS_INLINE vec cos(vec x) {
    if constexpr (N == 1)
      return lanewise(x, [](T t) DEFT_INLINED { return std::cos(t); });
    else if constexpr (traits::HasCos)
      return out(Eigen::internal::pcos(in(x)));
    else if constexpr (single)
      return lanewise(x, [](T t) DEFT_INLINED { return std::cos(t); });
    else
      return sine<1>(x);
  }
  /// The sine of x and so many right angles. Coefficients and the parts of pi/2: fdlibm, k_sin.c,
  /// k_cos.c and e_rem_pio2.c.
  template <int Quarters>
  static DEFT_NOINLINE vec sine(vec x) {
    constexpr T s[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,
                       -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                       -2.50507602534068634195e-08, 1.58969099521155010221e-10};
    constexpr T c[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                       2.48015872894767294178e-05, -2.75573143513906633035e-07,
                       2.08757232129817482790e-09, -1.13596475577881948265e-11};
    using ivec = cpu::vec<std::int64_t, N>;
    const vec t = madd(x, all(T(0.63661977236758134308)), all(round_by)), n = t - round_by;
    // The first two products are exact: 33 bits by at most 20.
    vec r = x - n * T(1.57079632673412561417e+00);
    r = r - n * T(6.07710050630396597660e-11);
    r = madd(n, all(T(-2.02226624879595063154e-21)), r);
    const vec rr = r * r, half = rr * T(0.5), w = 1 - half;
    const vec by_sine = madd(rr * r, polynomial(rr, s), r);
    const vec by_cosine = w + madd(rr * rr, polynomial(rr, c), (1 - w) - half);
    const ivec quarter = __builtin_bit_cast(ivec, t) + Quarters;
    vec y = (quarter & 1) != 0 ? by_cosine : by_sine;
    y = (quarter & 2) != 0 ? -y : y;
    if constexpr (Quarters == 0) y = x == 0 ? x : y;  // of -0
    constexpr T most = 1'000'000;
    if (any(!(abs(x) <= most)))
      for (int i = 0; i < N; ++i)
        if (!(std::abs(x[i]) <= most)) y[i] = Quarters ? std::cos(x[i]) : std::sin(x[i]);
    return y;
  }

  /// Eigen's is wrong by up to 30 units in the last place, and has other infinities. The exponents
  /// that are mostly written, as literals, take an instruction or two. What a lane gives does not
  /// depend on the others. Where there are multiply-adds, floats are computed by series in double.
  static DEFT_ALWAYS_INLINE vec pow(vec x, vec y) {
    if (N > 1 && any(y != all(y[0]))) return general_pow(x, y, false);
    if (y[0] == 2) return x * x;
    if (y[0] == 3) return x * x * x;
    if (y[0] == 1) return x;
    if (y[0] == -1) return 1 / x;
    if (y[0] == T(0.5)) {
      const vec root = sqrt(x) + T(0);  // of -0 it is 0
      return x == least_of<T> ? all(greatest_of<T>) : root;
    }
    return general_pow(x, y, true);
  }
  /// `same`: one exponent for all lanes, none of those above.
  static DEFT_NOINLINE vec general_pow(vec x, vec y, bool same) {
    if constexpr (single && N > 1 && fused_multiply_add) {
      constexpr std::make_integer_sequence<int, N / 2> half{};
      const vec z = detail::join(
          half_power<N / 2>(detail::slice<0>(x, half), detail::slice<0>(y, half)),
          half_power<N / 2>(detail::slice<N / 2>(x, half), detail::slice<N / 2>(y, half)),
          std::make_integer_sequence<int, N>());
      constexpr T infinity = greatest_of<T>;
      const vec a = abs(y);
      auto other = ~((x > 0) & (x < infinity) & (a < infinity));
      if (!same) other |= (y == 2) | (y == 3) | (a == 1) | (y == T(0.5));
      if (!any(other)) return z;
      for (int i = 0; i < N; ++i) x[i] = other[i] ? power(x[i], y[i]) : z[i];
    } else {
      for (int i = 0; i < N; ++i) x[i] = power(x[i], y[i]);
    }
    return x;
  }
  static T power(T x, T y) {
    if (y == 2) return x * x;
    if (y == 3) return x * x * x;
    if (y == 1) return x;
    if (y == -1) return 1 / x;
    if (y == T(0.5)) return x == least_of<T> ? -x : std::sqrt(x) + T(0);
    return std::pow(x, y);
  }
  /// The power of half of the lanes, of finite x > 0, in double: 2^(y log2 x), each within 2^-32.
  template <int H>
  static DEFT_ALWAYS_INLINE auto half_power(cpu::vec<float, H> x, cpu::vec<float, H> y) {
    using D = packet<double, H>;
    using wide = typename D::vec;
    using bits = cpu::vec<std::uint64_t, H>;
    constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;
    // x = 2^k m, m in [sqrt 1/2, sqrt 2).
    const bits above =
        __builtin_bit_cast(bits, __builtin_convertvector(x, wide)) + (one - root_half);
    const wide k = __builtin_bit_cast(wide, (above >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
    const wide m = __builtin_bit_cast(wide, (above & 0x000fffffffffffff) + root_half);
    // log2 m by the series of artanh, 2^r by that of the exponential function.
    constexpr double inverse = 2 / 0.69314718055994530942;
    constexpr double log2[] = {inverse,     inverse / 3,  inverse / 5, inverse / 7,
                               inverse / 9, inverse / 11, inverse / 13};
    const wide s = (m - 1) / (m + 1);
    wide t = __builtin_convertvector(y, wide) * D::madd(s, D::polynomial(s * s, log2), k);
    t = D::max(D::min(t, D::all(200)), D::all(-200));
    const wide sum = t + D::round_by, r = t - (sum - D::round_by);
    constexpr double exp2[] = {1,
                               0.69314718055994530942,
                               0.24022650695910071233,
                               0.055504108664821579953,
                               0.0096181291076284771619,
                               0.0013333558146428443423,
                               0.00015403530393381609954,
                               1.5252733804059840280e-05,
                               1.3215486790144309488e-06};
    const wide power = __builtin_bit_cast(wide, (__builtin_bit_cast(bits, sum) << 52) + one);
    return __builtin_convertvector(D::polynomial(r, exp2) * power, cpu::vec<float, H>);
  }
  /// Whether a comparison holds in one lane.
  template <class M>
  static DEFT_ALWAYS_INLINE bool any(M m) {
    return Eigen::internal::predux_any(in(__builtin_bit_cast(vec, m)));
  }
  static DEFT_ALWAYS_INLINE vec floor(vec x) {
    if constexpr (N == 1 || !traits::HasFloor)
      return lanewise(x, [](T t) DEFT_INLINED { return std::floor(t); });
    else
      return out(Eigen::internal::pfloor(in(x)));
  }

  /// Exact: Eigen's may trade the last bit, infinity and denormals for speed.
  static DEFT_ALWAYS_INLINE vec sqrt(vec x) {
#ifdef EIGEN_VECTORIZE_AVX512
    if constexpr (sizeof(vec) == 64) {
      if constexpr (single)
        return out(_mm512_sqrt_ps(in(x)));
      else
        return out(_mm512_sqrt_pd(in(x)));
    } else
#endif
#ifdef EIGEN_VECTORIZE_AVX
        if constexpr (sizeof(vec) == 32) {
      if constexpr (single)
        return out(_mm256_sqrt_ps(in(x)));
      else
        return out(_mm256_sqrt_pd(in(x)));
    } else
#endif
#ifdef EIGEN_VECTORIZE_SSE2
        if constexpr (sizeof(vec) == 16) {
      if constexpr (single)
        return out(_mm_sqrt_ps(in(x)));
      else
        return out(_mm_sqrt_pd(in(x)));
    } else
#endif
#if defined(EIGEN_VECTORIZE_NEON) && EIGEN_ARCH_ARM64
        if constexpr (sizeof(vec) == 16) {
      if constexpr (single)
        return out(vsqrtq_f32(in(x)));
      else
        return out(vsqrtq_f64(in(x)));
    } else
#endif
      return lanewise(x, [](T t) DEFT_INLINED { return std::sqrt(t); });
  }
};

}  // namespace deft::ext::cpu
