// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <deft/core/philox.hpp>
#include <deft/kernels/cpu/pack.hpp>
#include <numeric>

#include "arrays.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

template <class T, int L>
std::vector<T> lanes(const cpu::pack<T, L>& p) {
  T a[L];
  cpu::store(a, p);
  return std::vector<T>(a, a + L);
}
template <int S, int L>
std::vector<bool> lanes(const cpu::mask<S, L>& m) {
  bool a[L];
  cpu::store(a, cpu::to_bools(m));
  return std::vector<bool>(a, a + L);
}

/// Compares `body` on packs with `body` on single lanes.
template <class T, int L, class F>
void check_binary(F body, std::uint64_t seed, double ulps = 0) {
  auto a = values<T>(L, seed), b = values<T>(L, seed + 100);
  T x[L], y[L];
  std::copy(a.begin(), a.end(), x);
  std::copy(b.begin(), b.end(), y);
  auto got = lanes(body(cpu::load<T, L>(x), cpu::load<T, L>(y)));
  for (int i = 0; i < L; ++i) {
    INFO("lane " << i << " of " << L << ": " << str(x[i]) << ", " << str(y[i]));
    CHECK(close<T>(static_cast<T>(got[static_cast<std::size_t>(i)]),
                   static_cast<T>(body(num::lane<T>(x[i]), num::lane<T>(y[i])).v), ulps));
  }
}

template <class T, int L>
void check_numbers() {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    check_binary<T, L>([](auto a, auto b) { return a + b; }, seed);
    check_binary<T, L>([](auto a, auto b) { return a - b; }, seed);
    check_binary<T, L>([](auto a, auto b) { return a * b; }, seed);
    check_binary<T, L>([](auto a, auto b) { return a * b + a; }, seed);
    check_binary<T, L>([](auto a, auto b) { return a - b * 3; }, seed);
    check_binary<T, L>([](auto a, auto b) { return num::maximum(a, b); }, seed);
    check_binary<T, L>([](auto a, auto b) { return num::minimum(a, b); }, seed);
    check_binary<T, L>([](auto a, auto) { return -a; }, seed);
    check_binary<T, L>([](auto a, auto) { return num::abs(a); }, seed);
    check_binary<T, L>([](auto a, auto b) { return a < b; }, seed);
    check_binary<T, L>([](auto a, auto b) { return a >= b; }, seed);
    check_binary<T, L>([](auto a, auto b) { return a == b; }, seed);
    check_binary<T, L>([](auto a, auto b) { return a != b; }, seed);
    check_binary<T, L>([](auto a, auto b) { return num::select(a < b, a, b); }, seed);
    check_binary<T, L>([](auto a, auto b) { return !(a < b || (a == b && b < a)); }, seed);
  }
}

template <class From, class To, int L>
void check_cast() {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    auto v = values<From>(L, seed);
    From x[L];
    std::copy(v.begin(), v.end(), x);
    auto got = num::cast<To>(cpu::load<From, L>(x));
    auto out = lanes(got);
    for (int i = 0; i < L; ++i) {
      INFO(to_string(dtype_of<From>) << " to " << to_string(dtype_of<To>) << ": " << str(x[i]));
      CHECK(close<To>(out[static_cast<std::size_t>(i)], num::cast_scalar<To>(x[i]), 0));
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("arithmetic on packs agrees with scalars lane by lane", T, float, double,
                   std::int32_t, std::int64_t, std::uint8_t, std::int8_t) {
  constexpr int L = cpu::register_bytes / sizeof(T);
  check_numbers<T, L>();
  check_numbers<T, 2 * L>();
  if constexpr (sizeof(T) == 1) check_numbers<T, L / 4>();
}

TEST_CASE_TEMPLATE("casts of packs saturate and wrap as for scalars", T, float, double,
                   std::int32_t, std::int64_t, std::uint8_t, bool, std::int8_t) {
  constexpr int L = cpu::register_bytes / 4;
  check_cast<T, float, L>();
  check_cast<T, double, L>();
  check_cast<T, std::int32_t, L>();
  check_cast<T, std::int64_t, L>();
  check_cast<T, std::uint8_t, L>();
  check_cast<T, bool, L>();
}

TEST_CASE_TEMPLATE("exp, log, tanh and sqrt are accurate to a few units at the ends of their range",
                   T, float, double) {
  constexpr int L = cpu::register_bytes / sizeof(T);
  const T edge = std::log(std::numeric_limits<T>::max());
  std::vector<T> at = values<T>(64, 5);
  at.insert(at.end(), {edge, std::nextafter(edge, T(1e4)), -edge, edge * T(-1.02), T(-1.2) * edge,
                       T(1e-5), T(0.625), T(9.01), T(-9.01), T(20)});
  for (T x : at) {
    INFO(str(x));
    auto p = cpu::broadcast<T, L>(x);
    // At its end exp is denormal: the difference is measured in the smallest denormal.
    CHECK(close(lanes(num::exp(p))[0], std::exp(x), 2));
    CHECK(close(lanes(num::log(p))[L - 1], std::log(x), 2));
    CHECK(close(lanes(num::tanh(p))[0], std::tanh(x), 8));  // a quotient of two polynomials
    CHECK_FALSE(std::abs(lanes(num::tanh(p))[0]) > 1);
    CHECK(close(lanes(num::sqrt(p))[0], std::sqrt(x), 0));
  }
}

TEST_CASE("sines and cosines of doubles are accurate everywhere, also next to their zeros") {
  constexpr int L = cpu::register_bytes / sizeof(double);
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<double> at = values<double>(64, 5);
  at.insert(at.end(), {0., -0., inf, -inf, 1e6, -1e6, std::nextafter(1e6, 2e6), 1e22, 5e-324});
  for (int k = -40; k < 40; ++k)
    for (const double x : {k * 1.5707963267948966, k * 39999. * 0.78539816339744831, k / 7.})
      at.push_back(x);
  for (std::size_t i = 0; i < at.size(); ++i) {
    INFO(str(at[i]));
    double x[L];
    for (int l = 0; l < L; ++l) x[l] = at[(i + static_cast<std::size_t>(l)) % at.size()];
    const auto p = cpu::load<double, L>(x);
    CHECK(close(lanes(num::sin(p))[0], std::sin(at[i]), 3));
    CHECK(close(lanes(num::cos(p))[0], std::cos(at[i]), 3));
    if (at[i] == 0) CHECK(std::signbit(lanes(num::sin(p))[0]) == std::signbit(at[i]));
    // A lane does not depend on the others.
    CHECK(close(lanes(num::sin(cpu::broadcast<double, L>(at[i])))[0], lanes(num::sin(p))[0], 0));
  }
}

TEST_CASE("floats to powers are rounded almost exactly") {
  constexpr int L = cpu::register_bytes / sizeof(float);
  philox_stream random(7);
  for (int i = 0; i < 5000; ++i) {
    const float x = std::exp2(random.uniform(-40, 40)), y = random.uniform(-4, 4);
    INFO(str(x, " to the power of ", y));
    const float got = lanes(num::pow(cpu::broadcast<float, L>(x), cpu::broadcast<float, L>(y)))[0];
    CHECK(close(got, static_cast<float>(std::pow(double{x}, double{y})), 1));
  }
}

TEST_CASE_TEMPLATE("powers are std::pow's, also with the exponents that take a product", T, float,
                   double) {
  constexpr int L = cpu::register_bytes / sizeof(T);
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> at = values<T>(64, 5);
  at.insert(at.end(), {T(0), T(-0.), inf, -inf, nan, T(1), T(-1), std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::denorm_min(), T(-1e-20)});
  for (T y : {T(2), T(3), T(1), T(-1), T(0.5), T(0), T(-0.5), T(1.5), T(4), inf, nan})
    for (T x : at) {
      INFO(str(x, " to the power of ", y));
      const T expected = std::pow(x, y);
      const auto one = lanes(num::pow(cpu::broadcast<T, L>(x), cpu::broadcast<T, L>(y)));
      // The same beside another exponent.
      T exponents[L];
      std::fill(exponents, exponents + L, y);
      if (L > 1) exponents[0] = T(0.7);
      const auto other = lanes(num::pow(cpu::broadcast<T, L>(x), cpu::load<T, L>(exponents)));
      CHECK(close(one[0], expected, 1));
      if (std::isnan(expected)) continue;
      CHECK(std::signbit(one[0]) == std::signbit(expected));
      CHECK(std::memcmp(&one.back(), &other.back(), sizeof(T)) == 0);
    }
}

TEST_CASE_TEMPLATE("some lanes are loaded and stored, none to all", T, float, double, std::int32_t,
                   std::int64_t, std::uint8_t) {
  const auto check = []<int L>(std::integral_constant<int, L>) {
    std::vector<T> from(static_cast<std::size_t>(L));
    std::iota(from.begin(), from.end(), T(1));
    for (int n = 0; n <= L; ++n) {
      CAPTURE(n);
      // Exactly n elements, so that a sanitizer sees what lies beyond.
      std::vector<T> some(from.data(), from.data() + n), to(static_cast<std::size_t>(n));
      some.reserve(1), to.reserve(1);  // no null pointers
      const auto p = cpu::load_some<L>(some.data(), n, T(77));
      auto wanted = some;
      wanted.resize(static_cast<std::size_t>(L), T(77));
      CHECK(lanes(p) == wanted);
      cpu::store_some(to.data(), p, n);
      CHECK(to == some);
    }
  };
  constexpr int L = cpu::register_bytes / static_cast<int>(sizeof(T));
  check(std::integral_constant<int, L>());
  check(std::integral_constant<int, 2 * L>());
}

TEST_CASE("a zero divisor in a single lane is an error") {
  constexpr int L = cpu::register_bytes / 4;
  for (int i = 0; i < L; ++i) {
    std::int32_t b[L];
    std::fill(b, b + L, 3);
    b[i] = 0;
    CHECK(error_of([&] { (void)(7 / cpu::load<std::int32_t, L>(b)); }) ==
          "invalid_argument: [div] integer division by zero");
  }
}

TEST_CASE("-0 keeps its sign in every lane") {
  auto p = lanes(cpu::broadcast<float, cpu::register_bytes / 4>(-0.f));
  for (float v : p) CHECK(std::signbit(v));
}
