// SPDX-License-Identifier: Apache-2.0
// tests/core/test_quantized.cpp: blocks as ggml's documentation defines them.
#include <deft/core/quantized.hpp>
// its own header comes first, to check that it is self-contained
#include <deft/core/half.hpp>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

void add_half(std::string& to, float v) {
  const std::uint16_t bits = to_float16(v);
  to += static_cast<char>(bits & 255);
  to += static_cast<char>(bits >> 8);
}
/// Byte i has i in its lower bits and 15 - i in its upper ones.
void add_nibbles(std::string& to) {
  for (int i = 0; i < 16; ++i) to += static_cast<char>(i | (15 - i) << 4);
}
quantized_array array_of(block_format f, const dims& shape, const std::string& bytes) {
  return {f, shape, buffer::borrow(bytes.data(), bytes.size())};
}

}  // namespace

TEST_CASE("blocks of Q4_0, Q4_1 and Q8_0 are scaled integers") {
  std::string q4_0, q4_1, q8_0;
  for (const float d : {0.5f, -2.f}) {
    add_half(q4_0, d);
    add_nibbles(q4_0);
    add_half(q4_1, d);
    add_half(q4_1, 10);
    add_nibbles(q4_1);
    add_half(q8_0, d);
    for (int i = 0; i < 32; ++i) q8_0 += static_cast<char>(8 * i - 128);
  }
  const any_array a = array_of(block_format::q4_0, {2, 32}, q4_0).dequantized();
  const any_array b = array_of(block_format::q4_1, {64}, q4_1).dequantized();
  const any_array c = array_of(block_format::q8_0, {1, 1, 64}, q8_0).dequantized();
  CHECK(a.shape() == dims{2, 32});
  CHECK(b.shape() == dims{64});
  CHECK(c.shape() == dims{1, 1, 64});
  for (int i = 0; i < 64; ++i) {
    const float d = i < 32 ? 0.5f : -2.f;
    const int j = i % 32, q = j < 16 ? j : 31 - j;
    CAPTURE(i);
    CHECK(a.data<float>()[i] == d * static_cast<float>(q - 8));
    CHECK(b.data<float>()[i] == d * static_cast<float>(q) + 10);
    CHECK(c.data<float>()[i] == d * static_cast<float>(8 * j - 128));
  }
}

TEST_CASE("an array without elements has no blocks") {
  const quantized_array none(block_format::q8_0, {0, 32}, {});
  CHECK(none.bytes() == 0);
  CHECK(none.dequantized().shape() == dims{0, 32});
  CHECK(to_string(none.format()) == "Q8_0");
}
