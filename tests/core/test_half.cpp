// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstdint>
#include <deft/core/any_array.hpp>
#include <deft/core/dtype.hpp>
#include <deft/core/ndarray.hpp>
#include <deft/core/text.hpp>
#include <limits>
#include <utility>

#include "testing.hpp"

using namespace deft;

namespace {

constexpr float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

}  // namespace

// Constant expressions, by IEEE 754.
static_assert(bfloat16(1.00390625f).bits() == 0x3f80, "a tie goes to the even one");
static_assert(bfloat16(float_of(0x3f808001)).bits() == 0x3f81);
static_assert(bfloat16(3.14159265f).bits() == 0x4049);
static_assert(float16(65504.f).bits() == 0x7bff);
static_assert(float16(65519.996f).bits() == 0x7bff && float16(65520.f).bits() == 0x7c00);
static_assert(bfloat16(65504.f) == 65536.f);
static_assert(bfloat16(3.39e38f).bits() == 0x7f7f);
static_assert(bfloat16(std::numeric_limits<float>::max()).bits() == 0x7f80);
static_assert(float16(5.96e-8f).bits() == 1);
static_assert(float16(0x1p-25f).bits() == 0, "half of the smallest is a tie");
static_assert(float16(0x1.000002p-25f).bits() == 1);
static_assert(bfloat16(1e-40f).bits() == 1, "subnormal numbers are kept");
static_assert(bfloat16(0.1f).bits() == 0x3dcd && float16(0.1f).bits() == 0x2e66);
static_assert(bfloat16(-0.f).bits() == 0x8000 && float16(-0.f).bits() == 0x8000);
static_assert(bfloat16(std::numeric_limits<float>::quiet_NaN()).bits() == 0x7fc0);
static_assert(float(float16::from_bits(0x7c00)) == std::numeric_limits<float>::infinity());

TEST_CASE("every number of 16 bits is kept through float, and rounds to itself") {
  for (unsigned i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const auto b = bfloat16::from_bits(bits);
    if (std::isnan(float(b)))
      CHECK(bfloat16(float(b)).bits() == 0x7fc0);
    else
      CHECK(bfloat16(float(b)).bits() == bits);
    const auto h = float16::from_bits(bits);
    if (std::isnan(float(h)))
      CHECK(float16(float(h)).bits() == 0x7e00);
    else
      CHECK(float16(float(h)).bits() == bits);
  }
}

TEST_CASE("numbers between two neighbours round to the nearer, and in the middle to the even one") {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    const unsigned end = T(std::numeric_limits<float>::infinity()).bits();
    for (unsigned i = 0; i + 1 < end; ++i) {
      const auto low = T::from_bits(static_cast<std::uint16_t>(i)),
                 high = T::from_bits(static_cast<std::uint16_t>(i + 1));
      const double middle = (double(float(low)) + double(float(high))) / 2;
      const auto tie = static_cast<float>(middle);  // exact, but of bfloat16's smallest
      if (double(tie) == middle) {
        CHECK(T(tie).bits() == (i % 2 == 0 ? low : high).bits());
        CHECK(T(std::nextafter(tie, 0.f)).bits() == low.bits());
        CHECK(T(std::nextafter(tie, INFINITY)).bits() == high.bits());
        CHECK(T(-tie).bits() == (T(tie).bits() | 0x8000));
      }
      // A double is rounded once: by way of float, it would be the tie.
      CHECK(T(std::nextafter(middle, 0.)).bits() == low.bits());
      CHECK(T(std::nextafter(middle, HUGE_VAL)).bits() == high.bits());
    }
  };
  check(bfloat16());
  check(float16());
}

TEST_CASE("limits are those of the formats") {
  using b = std::numeric_limits<bfloat16>;
  using h = std::numeric_limits<float16>;
  CHECK(float(b::max()) == 0x1.fep127f);
  CHECK(float(b::lowest()) == -0x1.fep127f);
  CHECK(float(b::min()) == 0x1p-126f);
  CHECK(float(b::denorm_min()) == 0x1p-133f);
  CHECK(float(b::epsilon()) == 0x1p-7f);
  CHECK(float(h::max()) == 65504);
  CHECK(float(h::lowest()) == -65504);
  CHECK(float(h::min()) == 0x1p-14f);
  CHECK(float(h::denorm_min()) == 0x1p-24f);
  CHECK(float(h::epsilon()) == 0x1p-10f);
  CHECK(std::isinf(float(b::infinity())));
  CHECK(std::isinf(float(h::infinity())));
  CHECK(std::isnan(float(b::quiet_NaN())));
  CHECK(std::isnan(float(h::quiet_NaN())));
  CHECK(float(ext::least_of<bfloat16>) == -std::numeric_limits<float>::infinity());
  CHECK(float(ext::greatest_of<float16>) == std::numeric_limits<float>::infinity());
}

TEST_CASE("every NaN becomes the same one") {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffc00000u}) {
    CHECK(bfloat16(float_of(bits)).bits() == 0x7fc0);
    CHECK(float16(float_of(bits)).bits() == 0x7e00);
  }
}

TEST_CASE("arithmetic is that of float") {
  const bfloat16 a = 1.5f, b = 2;
  static_assert(std::is_same_v<decltype(a + b), float>);
  CHECK(a + b == 3.5f);
  CHECK(a * 2.f == 3.f);
  CHECK(-a == -1.5f);
  CHECK(a < b);
  bfloat16 sum = a + b;
  CHECK(sum == 3.5f);
  CHECK(float16(sum) == 3.5f);
}

TEST_CASE("they are printed in the fewest digits that tell them from their neighbours") {
  CHECK(ext::str(bfloat16(0.1f), ' ', float16(0.1f)) == "0.1 0.1");
  CHECK(ext::str(bfloat16(3.14159f), ' ', float16(3.14159f)) == "3.14 3.14");
  CHECK(ext::str(float16(65504), ' ', bfloat16(4096), ' ', float16(-1)) == "65504 4096 -1");
  CHECK(ext::str(bfloat16(3e38f), ' ', std::numeric_limits<float16>::denorm_min()) ==
        "3e+38 6e-08");
  CHECK(ext::str(std::numeric_limits<bfloat16>::infinity(), ' ',
                 std::numeric_limits<float16>::quiet_NaN()) == "inf nan");
  CHECK(to_string(any_array(ndarray<bfloat16, 3>{1, 0.1f, -2.5f})) == "[ 1.   0.1 -2.5]");
  CHECK(to_string(any_array(ndarray<float16, 2>{40, 1})) == "[40.  1.]");
  for (unsigned i = 0; i < 0x7c00; ++i) {
    const auto h = float16::from_bits(static_cast<std::uint16_t>(i));
    CHECK(float16(std::strtof(ext::str(h).c_str(), nullptr)).bits() == i);
  }
}
