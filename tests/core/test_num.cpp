// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <deft/core/num_lane.hpp>
#include <limits>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using num::lane;

namespace {
template <class T>
constexpr T low = std::numeric_limits<T>::lowest();
template <class T>
constexpr T high = std::numeric_limits<T>::max();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();
}  // namespace

// Constant expressions: an overflow that C++ leaves undefined would not compile.

TEST_CASE_TEMPLATE("integers wrap", T, std::int32_t, std::int64_t, std::int8_t) {
  using V = lane<T>;
  static_assert((V(high<T>) + 1).v == low<T>);
  static_assert((V(low<T>) - 1).v == high<T>);
  static_assert((V(high<T>) * high<T>).v == 1);
  static_assert((V(low<T>) * -1).v == low<T>);
  static_assert((-V(low<T>)).v == low<T>);
  static_assert(num::abs(V(low<T>)).v == low<T>);
  static_assert((V(low<T>) / -1).v == low<T>);
  using B = lane<std::uint8_t>;
  static_assert((B(250) + 10).v == 4);
  static_assert((B(255) * 255).v == 1);
  static_assert((-B(1)).v == 255);
}

TEST_CASE_TEMPLATE("integer division truncates, and division by zero is an error", T, std::int32_t,
                   std::int64_t, std::uint8_t, std::int8_t) {
  using V = lane<T>;
  static_assert((V(7) / 2).v == 3);
  static_assert((V(7) % 2).v == 1);
  if constexpr (std::is_signed_v<T>) {
    static_assert((V(-7) / 2).v == -3);
    static_assert((V(7) / -1).v == -7);
    static_assert((V(-7) % 2).v == -1);
    static_assert((V(7) % -2).v == 1);
    static_assert((V(low<T>) % -1).v == 0);
  }
  CHECK(testing::error_of([] { (void)(V(1) / 0); }) ==
        "invalid_argument: [div] integer division by zero");
  CHECK(testing::error_of([] { (void)(V(1) % 0); }) ==
        "invalid_argument: [mod] integer division by zero");
}

TEST_CASE("floats divide by zero as IEEE says") {
  CHECK((lane<float>(1) / 0).v == inf);
  CHECK((lane<float>(-1) / 0).v == -inf);
  CHECK(std::isnan((lane<float>(0) / 0).v));
}

TEST_CASE("maximum and minimum propagate NaN from either side") {
  using V = lane<float>;
  for (float v : {1.f, -inf, inf}) {
    CHECK(std::isnan(num::maximum(V(v), quiet_nan).v));
    CHECK(std::isnan(num::maximum(V(quiet_nan), v).v));
    CHECK(std::isnan(num::minimum(V(v), quiet_nan).v));
    CHECK(std::isnan(num::minimum(V(quiet_nan), v).v));
  }
  static_assert(num::maximum(lane<int>(2), 3).v == 3 && num::minimum(lane<int>(2), 3).v == 2);
  static_assert(num::maximum(lane<double>(-2.5), -3.0).v == -2.5);
  static_assert(num::minimum(lane<double>(-2.5), -3.0).v == -3.0);
}

TEST_CASE("comparisons give a mask, which selects") {
  using V = lane<double>;
  static_assert((V(1) < 2).v && (V(2) > 1).v && (V(2) <= 2).v && (V(2) >= 2).v);
  static_assert((V(2) == 2).v && (V(1) != 2).v && !(V(0) == 0 && !(V(1) < 2 || V(3) < 2)).v);
  static_assert(num::select(V(1) < 2, V(3), 4).v == 3 && num::select(V(1) > 2, V(3), 4).v == 4);
  const V nan = quiet_nan;
  CHECK_FALSE((nan == nan).v);
  CHECK((nan != nan).v);
  CHECK_FALSE((nan < 1 || nan >= 1).v);
}

namespace {
// Not inlined, as the compiler contracts only within one block.
template <class T>
DEFT_NOINLINE T product_plus(T x, T y, T z) {
  return (lane<T>(x) * y + z).v;
}
template <class T>
DEFT_NOINLINE T less_product(T x, T y, T z) {
  return (z - lane<T>(x) * y).v;
}
}  // namespace

TEST_CASE_TEMPLATE("a product is rounded before it is added to anything", T, float, double) {
  // 1 + 2e and its square: the last bits distinguish one rounding from two.
  volatile T x = 1 + 2 * std::numeric_limits<T>::epsilon();  // not known to the compiler
  const T squared = 1 + 4 * std::numeric_limits<T>::epsilon();
  CHECK(product_plus<T>(x, x, -squared) == 0);
  CHECK(less_product<T>(x, x, squared) == 0);
}

TEST_CASE_TEMPLATE("float to integer truncates, saturates, and maps NaN to 0", F, float, double) {
  struct {
    F from;
    std::int32_t i32;
    std::int64_t i64;
    std::uint8_t u8;
  } cases[] = {
      {F(1.9), 1, 1, 1},
      {F(-1.9), -1, -1, 0},
      {F(255.5), 255, 255, 255},
      {F(256), 256, 256, 255},
      {F(2147483648.0), high<std::int32_t>, 2147483648, 255},
      {F(-2147483648.0), low<std::int32_t>, -2147483648, 0},
      {F(9223372036854775808.0), high<std::int32_t>, high<std::int64_t>, 255},
      {F(1e30), high<std::int32_t>, high<std::int64_t>, 255},
      {F(-1e30), low<std::int32_t>, low<std::int64_t>, 0},
      {std::numeric_limits<F>::infinity(), high<std::int32_t>, high<std::int64_t>, 255},
      {std::numeric_limits<F>::quiet_NaN(), 0, 0, 0},
  };
  for (auto& c : cases) {
    CAPTURE(c.from);
    CHECK(num::cast_scalar<std::int32_t>(c.from) == c.i32);
    CHECK(num::cast_scalar<std::int64_t>(c.from) == c.i64);
    CHECK(num::cast_scalar<std::uint8_t>(c.from) == c.u8);
  }
}

TEST_CASE("other casts wrap, and a cast to bool tests for zero") {
  static_assert(num::cast_scalar<std::uint8_t>(300) == 44);
  static_assert(num::cast_scalar<std::int32_t>(std::int64_t{1} << 32) == 0);
  static_assert(num::cast_scalar<bool>(0.5f) && !num::cast_scalar<bool>(-0.f));
  static_assert(num::cast_scalar<float>(true) == 1.f);
  CHECK(num::cast_scalar<bool>(quiet_nan));
}
