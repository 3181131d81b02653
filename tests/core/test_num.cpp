// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <deft/core/num.hpp>
#include <limits>

#include "testing.hpp"

using namespace deft;

namespace {
template <class T>
constexpr T low = std::numeric_limits<T>::lowest();
template <class T>
constexpr T high = std::numeric_limits<T>::max();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();
}  // namespace

// Constant expressions: an overflow that C++ leaves undefined would not compile.

TEST_CASE_TEMPLATE("integers wrap", T, std::int32_t, std::int64_t) {
  static_assert(num::add(high<T>, T{1}) == low<T>);
  static_assert(num::sub(low<T>, T{1}) == high<T>);
  static_assert(num::mul(high<T>, high<T>) == 1);
  static_assert(num::mul(low<T>, T{-1}) == low<T>);
  static_assert(num::neg(low<T>) == low<T>);
  static_assert(num::abs(low<T>) == low<T>);
  static_assert(num::div(low<T>, T{-1}) == low<T>);
  static_assert(num::add(std::uint8_t{250}, std::uint8_t{10}) == 4);
  static_assert(num::mul(std::uint8_t{255}, std::uint8_t{255}) == 1);
  static_assert(num::neg(std::uint8_t{1}) == 255);
}

TEST_CASE_TEMPLATE("integer division truncates, and by zero is an error", T, std::int32_t,
                   std::int64_t, std::uint8_t) {
  static_assert(num::div(T{7}, T{2}) == 3);
  static_assert(num::mod(T{7}, T{2}) == 1);
  if constexpr (std::is_signed_v<T>) {
    static_assert(num::div(T{-7}, T{2}) == -3);
    static_assert(num::div(T{7}, T{-1}) == -7);
    static_assert(num::mod(T{-7}, T{2}) == -1);
    static_assert(num::mod(T{7}, T{-2}) == 1);
    static_assert(num::mod(std::numeric_limits<T>::min(), T{-1}) == 0);
  }
  CHECK(testing::error_of([] { (void)num::div(T{1}, T{0}); }) ==
        "invalid_argument: [div] integer division by zero");
  CHECK(testing::error_of([] { (void)num::mod(T{1}, T{0}); }) ==
        "invalid_argument: [mod] integer division by zero");
}

TEST_CASE("floats divide by zero as IEEE says") {
  CHECK(num::div(1.f, 0.f) == inf);
  CHECK(num::div(-1.f, 0.f) == -inf);
  CHECK(std::isnan(num::div(0.f, 0.f)));
}

TEST_CASE("maximum and minimum let NaN through from either side") {
  for (float v : {1.f, -inf, inf}) {
    CHECK(std::isnan(num::maximum(v, not_a_number)));
    CHECK(std::isnan(num::maximum(not_a_number, v)));
    CHECK(std::isnan(num::minimum(v, not_a_number)));
    CHECK(std::isnan(num::minimum(not_a_number, v)));
  }
  static_assert(num::maximum(2, 3) == 3 && num::minimum(2, 3) == 2);
  static_assert(num::maximum(-2.5, -3.0) == -2.5 && num::minimum(-2.5, -3.0) == -3.0);
}

TEST_CASE_TEMPLATE("float to integer truncates, saturates, and takes NaN to 0", F, float, double) {
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

TEST_CASE("other casts wrap, and bool is whether a value is not zero") {
  static_assert(num::cast_scalar<std::uint8_t>(300) == 44);
  static_assert(num::cast_scalar<std::int32_t>(std::int64_t{1} << 32) == 0);
  static_assert(num::cast_scalar<bool>(0.5f) && !num::cast_scalar<bool>(-0.f));
  static_assert(num::cast_scalar<float>(true) == 1.f);
  CHECK(num::cast_scalar<bool>(not_a_number));
}
