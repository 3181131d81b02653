// SPDX-License-Identifier: Apache-2.0
// deft/core/erf.hpp: polynomials of the error function and of its scaled complement.
#pragma once
#include <cmath>
#include <deft/core/num.hpp>
#include <iterator>

namespace deft::ext {

/// Fitted for this file, at Chebyshev's points; relative errors 1e-8 and 1e-17.
template <class T>
struct erf_series;
template <>
struct erf_series<float> {
  /// erf(x) / x by x^2, where x is in [-1, 1].
  static constexpr float near_zero[] = {
      1.1283791065216064f,   -0.3761262595653534f,   0.11283594369888306f,   -0.02685421146452427f,
      0.005189087241888046f, -0.000801686430349946f, 7.875874871388078e-05f,
  };
  /// (1 + 2x) exp(x^2) erfc(x) by (x - middle) / (x + middle), where x is not negative.
  static constexpr float scaled[] = {
      1.2530080080032349f,     -0.1356211006641388f,    -0.04756215587258339f,
      0.1296447217464447f,     -0.1192752793431282f,    0.06831319630146027f,
      -0.023763559758663177f,  0.0025067785754799843f,  0.0018750602612271905f,
      -0.0007340820739045739f, -9.253768803318962e-05f, 8.007454744074494e-05f,
  };
  static constexpr float middle = 3;
  static constexpr float most = 1e9f;  ///< beyond which the quotient would not change
};
template <>
struct erf_series<double> {
  static constexpr double near_zero[] = {
      1.1283791670955126,      -0.37612638903183543,   0.11283791670945006,
      -0.02686617064323777,    0.0052239776071164225,  -0.0008548325975389692,
      0.00012055294904839707,  -1.492473690741966e-05, 1.6447424703317362e-06,
      -1.6208483801871705e-07, 1.3720064546777686e-08, -7.795898827002142e-10,
  };
  static constexpr double scaled[] = {
      1.2329951186255526,      -0.13962111684056228,    0.015379652102619974,
      0.06809705425466839,     -0.10103906603631811,    0.09373283499911264,
      -0.06633036581186058,    0.037167515526338006,    -0.01619773406293477,
      0.005031970069102256,    -0.0007577732435942576,  -0.0001992571524726518,
      0.00015062142608651945,  -2.4397731143023292e-05, -1.1221135665965907e-05,
      5.70657829924074e-06,    2.9173425573089733e-07,  -8.210647933297337e-07,
      7.771943241086912e-08,   1.0631817593818149e-07,  -2.0725802488181963e-08,
      -1.2338731403798444e-08, 3.2323973445082033e-09,  9.297625263709659e-10,
      -2.764120233734578e-10,
  };
  static constexpr double middle = 4;
  static constexpr double most = 1e18;
};

/// exp(x^2) erfc(x) of one number that is not negative. A float is computed in double.
template <class T>
DEFT_HD T erfcx(T x) {
#ifdef __CUDA_ARCH__
  return ::erfcx(x);
#else
  using series = erf_series<double>;
  const double a = x < series::most ? x : x == x ? series::most : static_cast<double>(x);
  const double q = (a - series::middle) / (a + series::middle);
  double y = 0;
  for (int i = static_cast<int>(std::size(series::scaled)); i-- > 0;)
    y = num::rounded(y * q) + series::scaled[i];
  return static_cast<T>(y / (1 + (a + a)));
#endif
}

}  // namespace deft::ext
