// SPDX-License-Identifier: Apache-2.0
#include <deft/core/normal.hpp>

#include <cmath>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using lane = num::lane<double>;

TEST_CASE("numbers are split into a power of two and a mantissa") {
  for (double x : {1., 2., 0.5, 3.75, 0x1.fffffffffffffp-1, 0x1p-1022, 1e300, 0.3}) {
    CAPTURE(x);
    int exponent = 0;
    const double mantissa = 2 * std::frexp(x, &exponent);
    const auto parts = num::split(lane(x));
    CHECK(parts.exponent.v == exponent - 1);
    CHECK(parts.mantissa.v == mantissa);
  }
}

TEST_CASE("numbers are split as floats, too") {
  for (float x : {1.f, 0.5f, 3.75f, 0x1.fffffep-1f, 0x1p-126f, 1e30f, 0.3f}) {
    CAPTURE(x);
    int exponent = 0;
    const float mantissa = 2 * std::frexp(x, &exponent);
    const auto parts = num::split(num::lane<float>(x));
    CHECK(parts.exponent.v == static_cast<float>(exponent - 1));
    CHECK(parts.mantissa.v == mantissa);
  }
}

TEST_CASE("polynomials begin with the constant") {
  CHECK(num::polynomial(lane(10), {4., 3.}).v == 34);
  CHECK(num::polynomial(lane(10), {4., 3., 2.}).v == 234);
  CHECK(num::polynomial(lane(10), {4., 3., 2., 1., 7., 5.}).v == 571234);
  CHECK(num::polynomial(num::lane<float>(10), {4.f, 3.f, 2.f, 1.f}).v == 1234);
}

TEST_CASE("the logarithm agrees with the standard library's to rounding") {
  for (double p = 0x1p-53; p < 1; p = p * 1.37 + 1e-18) {
    CAPTURE(p);
    CHECK(num::logarithm(lane(p)).v == doctest::Approx(std::log(p)).epsilon(4e-16));
  }
}

TEST_CASE("the percentage points of the normal distribution are the published ones") {
  const std::pair<double, double> known[] = {{0.5, 0},
                                             {0.25, -0.6744897501960817},
                                             {0.975, 1.959963984540054},
                                             {0.001, -3.090232306167813},
                                             {1e-20, -9.262340089798408}};
  for (const auto& k : known) {
    const double p = k.first;
    CAPTURE(p);
    CHECK(num::normal_of(lane(p)).v == doctest::Approx(k.second).epsilon(1e-15));
  }
  for (double p = 1e-12; p < 1; p = p * 1.9 + 1e-14) {
    CAPTURE(p);
    CHECK(std::erfc(-num::normal_of(lane(p)).v / std::sqrt(2.)) / 2 ==
          doctest::Approx(p).epsilon(1e-13));
  }
}

TEST_CASE("floats within a distance of the middle are those of the percentage points") {
  using single = num::lane<float>;
  CHECK(num::negative_logarithm(single(1)).v == 0);
  for (float y = 0x1p-23f; y < 1; y *= 1.0371f) {
    CAPTURE(y);
    CHECK(num::negative_logarithm(single(y)).v == doctest::Approx(-std::log(y)).epsilon(2e-7));
  }
  CHECK(num::symmetric_normal_of(single(0)).v == 0);
  for (int i = 1; i < 1 << 24; i += 1009) {
    const float x = static_cast<float>(i) * 0x1p-24f;
    CAPTURE(x);
    const double z = num::normal_of(lane((1 + static_cast<double>(x)) / 2)).v;
    const float got = num::symmetric_normal_of(single(x)).v;
    CHECK(std::abs(got - z) <= 5e-7 * z);
    CHECK(num::symmetric_normal_of(single(-x)).v == -got);
  }
}
