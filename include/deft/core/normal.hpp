// SPDX-License-Identifier: Apache-2.0
// deft/core/normal.hpp: the inverse of the normal distribution, the same bits on every processor:
// sums and products are rounded one by one.
#pragma once
#include <deft/core/num_lane.hpp>
#include <utility>

namespace deft::ext::num {

/// x > 0 as 2^exponent * mantissa, mantissa in [1, 2). Packs have their own overload.
template <class T>
struct split_number {
  lane<T> exponent, mantissa;
};
template <class T>
DEFT_HD DEFT_ALWAYS_INLINE split_number<T> split(lane<T> x) {
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr int width = sizeof(T) == 4 ? 23 : 52, bias = sizeof(T) == 4 ? 127 : 1023;
  const auto bits = __builtin_bit_cast(U, x.v);
  const T mantissa =
      __builtin_bit_cast(T, static_cast<U>((bits & ((U{1} << width) - 1)) | U{bias} << width));
  return {static_cast<T>(static_cast<std::int32_t>(bits >> width) - bias), mantissa};
}

namespace detail {

/// The sum of every second coefficient from First on, with the powers of x2.
template <int First, class V, class C, int N, int... Index>
DEFT_HD DEFT_ALWAYS_INLINE V every_second([[maybe_unused]] V x2, const C (&c)[N],
                                          std::integer_sequence<int, Index...>) {
  constexpr int last = First + 2 * static_cast<int>(sizeof...(Index));
  V y = c[last];
  ((y = y * x2 + c[last - 2 - 2 * Index]), ...);
  return y;
}

}  // namespace detail

/// c[0] + c[1] x + … + c[N-1] x^(N-1), N > 1: the even and the odd powers, which do not wait for
/// each other.
template <value V, class C, int N>
DEFT_HD DEFT_ALWAYS_INLINE V polynomial(V x, const C (&c)[N]) {
  V x2 = x * x;
  V even = detail::every_second<0>(x2, c, std::make_integer_sequence<int, (N - 1) / 2>());
  V odd = detail::every_second<1>(x2, c, std::make_integer_sequence<int, (N - 2) / 2>());
  return even + odd * x;
}

/// The natural logarithm of 0 < p < 1, of doubles: exponent and mantissa, then the series of
/// artanh.
template <value V>
DEFT_HD DEFT_ALWAYS_INLINE V logarithm(V p) {
  const auto parts = split(p);
  V e = parts.exponent, m = parts.mantissa;
  auto high = m > 1.4142135623730951;
  m = num::select(high, m * 0.5, m);
  e = num::select(high, e + 1, e);
  V s = (m - 1) / (m + 1);
  V s2 = s * s;
  constexpr double odd[] = {2,       2. / 3,  2. / 5,  2. / 7,  2. / 9,
                            2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19};
  return e * 0.6931471805599453 + s * polynomial(s2, odd);
}

/// The normal distribution's inverse: Wichura, "The percentage points of the normal distribution",
/// Applied Statistics 37 (1988), algorithm AS 241, routine PPND16.
template <value V>
DEFT_HD DEFT_ALWAYS_INLINE V normal_of(V p) {
  constexpr double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                          1.9715909503065514427e+3, 1.3731693765509461125e+4,
                          4.5921953931549871457e+4, 6.7265770927008700853e+4,
                          3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double b[] = {1.0,
                          4.2313330701600911252e+1,
                          6.8718700749205790830e+2,
                          5.3941960214247511077e+3,
                          2.1213794301586595867e+4,
                          3.9307895800092710610e+4,
                          2.8729085735721942674e+4,
                          5.2264952788528545610e+3};
  constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                          5.76949722146069140550e0,  3.64784832476320460504e0,
                          1.27045825245236838258e0,  2.41780725177450611770e-1,
                          2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double d[] = {1.0,
                          2.05319162663775882187e0,
                          1.67638483018380384940e0,
                          6.89767334985100004550e-1,
                          1.48103976427480074590e-1,
                          1.51986665636164571966e-2,
                          5.47593808499534494600e-4,
                          1.05075007164441684324e-9};
  constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                          1.78482653991729133580e0,  2.96560571828504891230e-1,
                          2.65321895265761230930e-2, 1.24266094738807843860e-3,
                          2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double f[] = {1.0,
                          5.99832206555887937690e-1,
                          1.36929880922735805310e-1,
                          1.48753612908506148525e-2,
                          7.86869131145613259100e-4,
                          1.84631831751005468180e-5,
                          1.42151175831644588870e-7,
                          2.04426310338993978564e-15};
  V q = p - 0.5;
  V r = 0.180625 - q * q;
  V middle = q * polynomial(r, a) / polynomial(r, b);
  V tail = num::minimum(p, 1 - p);
  r = num::sqrt(-logarithm(tail));
  V inner = r - 1.6, outer = r - 5;
  V z = num::select(r <= 5, polynomial(inner, c) / polynomial(inner, d),
                    polynomial(outer, e) / polynomial(outer, f));
  z = num::select(q < 0, -z, z);
  return num::select(num::abs(q) <= 0.425, middle, z);
}

/// -log(y), 0 < y <= 1, of floats: exponent and mantissa, then the polynomial of Cephes' logf.
template <value V>
DEFT_HD DEFT_ALWAYS_INLINE V negative_logarithm(V y) {
  constexpr float c[] = {3.3333331174e-1f,  -2.4999993993e-1f, 2.0000714765e-1f,
                         -1.6668057665e-1f, 1.4249322787e-1f,  -1.2420140846e-1f,
                         1.1676998740e-1f,  -1.1514610310e-1f, 7.0376836292e-2f};
  const auto parts = split(y);
  V e = parts.exponent, m = parts.mantissa;
  auto high = m > 1.41421356f;
  m = num::select(high, m * 0.5f, m) - 1.f;
  e = num::select(high, e + 1.f, e);
  V m2 = m * m;
  V rest = m2 * m * polynomial(m, c) - m2 * 0.5f;
  return -(e * 0.693147181f + (rest + m));
}

/// The number between which and its negative a normally distributed one lies with probability |x|,
/// with the sign of x, |x| < 1; of floats, within 5e-7 of it. Giles, "Approximating the erfinv
/// function", GPU Computing Gems (2011).
template <value V>
DEFT_HD DEFT_ALWAYS_INLINE V symmetric_normal_of(V x) {
  constexpr float inner[] = {1.50140941f,     0.246640727f,    -0.00417768164f,
                             -0.00125372503f, 0.00021858087f,  -4.39150654e-06f,
                             -3.5233877e-06f, 3.43273939e-07f, 2.81022636e-08f};
  constexpr float outer[] = {2.83297682f,    1.00167406f,     0.00943887047f,
                             -0.0076224613f, 0.00573950773f,  -0.00367342844f,
                             0.00134934322f, 0.000100950558f, -0.000200214257f};
  V a = num::abs(x);
  V w = negative_logarithm((1.f - a) * (1.f + a));
  V p = num::select(w < 5.f, polynomial(w - 2.5f, inner), polynomial(num::sqrt(w) - 3.f, outer));
  return x * p * 1.41421356f;
}

}  // namespace deft::ext::num
