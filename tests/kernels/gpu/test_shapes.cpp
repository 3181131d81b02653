// SPDX-License-Identifier: Apache-2.0
#include <deft/op/broadcast_to.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/pad.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/transpose.hpp>

#include "../arrays.hpp"
#include "on_gpu.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

/// Compares with the processor's bits, at aligned and at unaligned addresses.
template <class Op>
void check_same(const Op& o, const std::vector<any_array>& in) {
  const any_array expected = run_op(o, in);
  for (std::size_t shift : {0, 1, 3}) {
    CAPTURE(shift);
    CHECK(identical(run_op_on_gpu(o, in, {.shift = shift}), expected));
  }
}
template <class T>
any_array mixed(const dims& shape, std::uint64_t seed = 1) {
  return filled<T>(shape, values<T>(std::max<std::int64_t>(shape.elements(), 1), seed));
}

}  // namespace

TEST_CASE_TEMPLATE("GPUs transpose as the processor does", T, float, double, std::int32_t,
                   std::int64_t, std::uint8_t, bool, std::int8_t) {
  const std::pair<dims, dims> cases[] = {
      {{}, {}},
      {{5}, {0}},
      {{1000}, {0}},
      {{3, 4}, {1, 0}},
      {{16, 16}, {1, 0}},
      {{100, 37}, {1, 0}},
      {{1, 9}, {1, 0}},
      {{8, 8}, {1, 0}},  // squares of 16 bytes by as many rows
      {{72, 136}, {1, 0}},
      {{256, 8}, {1, 0}},
      {{3, 16, 24}, {0, 2, 1}},
      {{16, 3, 24}, {2, 1, 0}},
      {{8, 5, 16, 3}, {1, 2, 3, 0}},  // across, what is dense in the input is not a multiple
      {{3, 8, 2, 16, 8}, {4, 2, 0, 3, 1}},
      {{300, 70}, {1, 0}},
      {{7, 11, 13}, {1, 2, 0}},
      {{2, 3, 4}, {2, 0, 1}},
      {{2, 3, 4}, {1, 0, 2}},
      {{5, 3, 16}, {1, 0, 2}},  // rows that are copied 16 bytes at a time
      {{5, 3, 160}, {1, 0, 2}},
      {{3, 2, 5, 4, 8}, {2, 0, 1, 3, 4}},
      {{5, 3, 17}, {1, 0, 2}},  // and those that are not
      {{2, 17, 3, 18}, {0, 3, 2, 1}},
      {{2, 3, 4, 5, 6}, {4, 1, 3, 0, 2}},
      {{1, 2, 1, 3, 1, 2}, {5, 3, 1, 0, 2, 4}},
      {{2, 1, 2, 3, 2, 1, 2, 2}, {7, 5, 0, 3, 4, 1, 2, 6}},
      {{0, 3}, {1, 0}},
      {{3, 0, 2}, {2, 0, 1}},
  };
  for (const auto& c : cases) {
    const dims shape = c.first, perm = c.second;
    INFO(to_string(shape) << " by " << to_string(perm));
    check_same(op::transpose{perm}, {mixed<T>(shape)});
  }
}

TEST_CASE_TEMPLATE("GPUs broadcast elements as the processor does", T, float, double, std::int32_t,
                   std::int64_t, std::uint8_t, bool, std::int8_t) {
  const std::pair<dims, dims> cases[] = {
      {{}, {}},
      {{}, {7}},
      {{}, {4096}},
      {{1}, {1009}},
      {{5}, {5}},
      {{1000}, {1000}},
      {{5}, {3, 5}},
      {{16}, {3, 16}},
      {{5, 1}, {5, 4}},
      {{5, 1}, {5, 16}},
      {{5, 1}, {5, 17}},
      {{2, 1, 3}, {2, 4, 3}},
      {{2, 1, 32}, {2, 4, 32}},
      {{3, 1}, {2, 3, 4}},
      {{3, 1, 5, 1, 2}, {3, 4, 5, 6, 2}},
      {{1, 3, 1, 5, 1, 2, 1, 3}, {2, 3, 2, 5, 2, 2, 3, 3}},
      {{4, 4}, {4, 4}},
      {{1, 3}, {0, 3}},
      {{0}, {4, 0}},
      {{}, {0}},
      {{1, 7000}, {3, 7000}},
  };
  for (const auto& c : cases) {
    const dims from = c.first, to = c.second;
    INFO(to_string(from) << " to " << to_string(to));
    const any_array x = mixed<T>(from);
    check_same(op::broadcast_to{to}, {x});
    check_same(op::broadcast_to(), {x, any_array(dtype::uint8, to).clone()});
  }
}

TEST_CASE_TEMPLATE("GPUs concatenate and split as the processor does", T, float, double,
                   std::int32_t, std::int64_t, std::uint8_t, bool, std::int8_t) {
  const std::pair<std::vector<dims>, std::int64_t> cases[] = {
      {{{3}, {4}, {1}}, 0},
      {{{100}, {16}, {0}, {33}}, 0},
      {{{2, 3}, {2, 4}}, 1},
      {{{20, 16}, {20, 32}}, 1},
      {{{20, 16}, {20, 1}, {20, 15}}, 1},
      {{{2, 3}, {5, 3}, {0, 3}}, 0},
      {{{2, 1, 4}, {2, 3, 4}}, 1},
      {{{2, 2, 1}, {2, 2, 5}}, 2},
      {{{4, 4}}, 1},
      {{{5, 37}}, 0},
      {{{0, 2}, {0, 3}}, 1},
      {{{3, 0}, {3, 0}}, 0},
      {{{100, 200}, {100, 301}}, 1},
  };
  for (const auto& joined : cases) {
    const auto& shapes = joined.first;
    const auto axis = joined.second;
    std::vector<any_array> parts;
    for (const auto& s : shapes) parts.push_back(mixed<T>(s, parts.size() + 1));
    INFO(parts.size() << " of " << to_string(shapes[0]) << " along " << axis);
    check_same(op::concat{axis}, parts);
    std::vector<any_array> in{run_op(op::concat{axis}, parts)};
    in.insert(in.end(), parts.begin(), parts.end());
    for (std::size_t p = 0; p < parts.size(); ++p)
      check_same(op::concat_part{axis, static_cast<std::int64_t>(p)}, in);
  }
}

TEST_CASE_TEMPLATE("GPUs slice and pad as the processor does", T, float, double, std::int32_t,
                   std::int64_t, std::uint8_t, bool, std::int8_t) {
  struct {
    dims whole, begin, size;
  } cases[] = {{{}, {}, {}},
               {{1000}, {16}, {512}},
               {{1000}, {17}, {511}},
               {{4, 5}, {1, 0}, {2, 5}},
               {{20, 64}, {0, 16}, {20, 32}},
               {{20, 64}, {3, 15}, {9, 32}},
               {{20, 65}, {3, 16}, {9, 32}},
               {{20, 64}, {3, 16}, {9, 1}},
               {{3, 4, 5}, {1, 1, 1}, {2, 2, 3}},
               {{3, 4, 16}, {0, 1, 0}, {3, 2, 16}},
               {{3, 4, 5}, {1, 0, 2}, {2, 4, 2}},
               {{2, 3, 4, 5, 6}, {0, 1, 0, 2, 0}, {2, 1, 4, 2, 6}},
               {{0, 3}, {0, 1}, {0, 2}},
               {{5, 6}, {1, 2}, {0, 3}}};
  for (const auto& c : cases) {
    INFO(to_string(c.size) << " of " << to_string(c.whole) << " at " << to_string(c.begin));
    check_same(op::slice{c.begin, c.size}, {mixed<T>(c.whole)});
    const any_array like(dtype::uint8, c.whole);
    check_same(op::pad{c.begin, {}, 1}, {mixed<T>(c.size), like.clone()});
  }
}

TEST_CASE("GPUs count elements along axes") {
  const any_array x = moderate<float>({2, 3, 4});
  for (const dims& axes : {dims{0, 2}, dims{}, dims{0, 1, 2}}) check_same(op::size_of{axes}, {x});
}

TEST_CASE("GPU kernels that move elements can be prepared again for other extents") {
  auto check = [](const auto& o, std::initializer_list<dims> shapes) {
    using Op = std::remove_cvref_t<decltype(o)>;
    prepared_on_gpu k(record_of<Op>, encode(o), types_of({moderate<float>(*shapes.begin())}));
    for (const dims& s : shapes) {
      INFO(to_string(s));
      const std::vector<any_array> in{moderate<float>(s)};
      k.node = node_of(record_of<Op>, encode(o), types_of(in));
      k.kernel->prepare(types_of(in), k.node.outputs);
      CHECK(identical(k.run(in)[0], run_op(o, in)));
    }
  };
  check(op::transpose{{1, 0}}, {{3, 4}, {0, 4}, {1, 1}, {40, 30}, {1, 7}, {5, 16}});
  check(op::broadcast_to{{5, dyn, 8}}, {{1, 1}, {3, 8}, {0, 8}, {3, 1}, {16, 8}});
}
