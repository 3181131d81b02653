// SPDX-License-Identifier: Apache-2.0
#include <deft/op/broadcast_to.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/pad.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/transpose.hpp>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace testing;

namespace {

template <class T>
void check_transpose(const dims& shape, const dims& perm) {
  INFO(to_string(shape) << " by " << to_string(perm));
  any_array x = moderate<T>(shape), y = run_op(op::transpose{perm}, {x});
  dims index = dims::filled(shape.rank(), 0);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    std::int64_t at = 0;
    for (int d = 0; d < perm.rank(); ++d) at = at * y.shape()[d] + index[static_cast<int>(perm[d])];
    REQUIRE(y.data<T>()[at] == x.data<T>()[i]);
    for (int d = shape.rank(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
}

}  // namespace

TEST_CASE_TEMPLATE("transpose moves every element to its place", T, float, double, std::uint8_t,
                   std::int8_t, bool) {
  const std::pair<dims, dims> cases[] = {
      {{}, {}},
      {{5}, {0}},
      {{3, 4}, {1, 0}},
      {{3, 4}, {0, 1}},
      {{16, 16}, {1, 0}},
      {{100, 37}, {1, 0}},
      {{1, 9}, {1, 0}},
      {{2, 3, 4}, {2, 1, 0}},
      {{2, 3, 4}, {0, 2, 1}},
      {{2, 3, 4}, {1, 0, 2}},
      {{2, 3, 4}, {2, 0, 1}},
      {{2, 3, 4}, {1, 2, 0}},
      {{20, 3, 40}, {2, 1, 0}},
      {{2, 17, 3, 18}, {0, 3, 2, 1}},
      {{2, 3, 4, 5, 6}, {4, 1, 3, 0, 2}},
      {{1, 2, 1, 3, 1, 2}, {5, 3, 1, 0, 2, 4}},
      {{0, 3}, {1, 0}},
      {{3, 0, 2}, {2, 0, 1}},
  };
  for (const auto& [shape, perm] : cases) check_transpose<T>(shape, perm);
}

TEST_CASE_TEMPLATE("broadcast_to repeats elements", T, float, double, bool) {
  const std::pair<dims, dims> cases[] = {{{}, {}},
                                         {{}, {7}},
                                         {{1}, {1000}},
                                         {{5}, {3, 5}},
                                         {{5, 1}, {5, 4}},
                                         {{2, 1, 3}, {2, 4, 3}},
                                         {{3, 1}, {2, 3, 4}},
                                         {{4, 4}, {4, 4}},
                                         {{1, 3}, {0, 3}},
                                         {{}, {300, 400}},
                                         {{1, 70'000}, {3, 70'000}}};
  for (const auto& c : cases) {
    const dims from = c.first, to = c.second;
    INFO(to_string(from) << " to " << to_string(to));
    any_array x = moderate<T>(from), expected(dtype_of<T>, to);
    broadcast_index index(from, to);
    for (std::int64_t i = 0; i < expected.elements(); ++i)
      expected.mutable_data<T>()[i] = x.data<T>()[index.offset[static_cast<std::size_t>(i)]];
    CHECK(identical(run_op(op::broadcast_to{to}, {x}), expected));
    any_array like(dtype::float32, to);
    CHECK(identical(run_op(op::broadcast_to(), {x, like}), expected));
  }
}

TEST_CASE("concat puts pieces one after another, and concat_part extracts them") {
  const std::pair<std::vector<dims>, std::int64_t> cases[] = {
      {{{3}, {4}, {1}}, 0},         {{{2, 3}, {2, 4}}, 1},       {{{2, 3}, {5, 3}, {0, 3}}, 0},
      {{{2, 1, 4}, {2, 3, 4}}, 1},  {{{2, 2, 1}, {2, 2, 5}}, 2}, {{{4, 4}}, 1},
      {{{100, 200}, {100, 300}}, 1}};
  for (const auto& [shapes, axis] : cases) {
    std::vector<any_array> parts;
    for (const auto& s : shapes) parts.push_back(moderate<float>(s, parts.size() + 1));
    any_array whole = run_op(op::concat{axis}, parts);
    std::int64_t begin = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      // Element by element, at an index that is shifted along the axis.
      dims index = dims::filled(shapes[p].rank(), 0);
      for (std::int64_t i = 0; i < parts[p].elements(); ++i) {
        std::int64_t at = 0;
        for (int d = 0; d < index.rank(); ++d)
          at = at * whole.shape()[d] + index[d] + (d == axis ? begin : 0);
        REQUIRE(whole.data<float>()[at] == parts[p].data<float>()[i]);
        for (int d = index.rank(); d-- > 0 && ++index[d] == shapes[p][d];) index[d] = 0;
      }
      begin += shapes[p][static_cast<int>(axis)];
      std::vector<any_array> in{whole};
      in.insert(in.end(), parts.begin(), parts.end());
      CHECK(identical(run_op(op::concat_part{axis, static_cast<std::int64_t>(p)}, in), parts[p]));
    }
  }
}

TEST_CASE_TEMPLATE("slice extracts a part, and pad puts it back among other elements", T, float,
                   double, std::uint8_t, bool, std::int8_t) {
  struct {
    dims whole, begin, size;
  } cases[] = {{{}, {}, {}},
               {{7}, {2}, {3}},
               {{7}, {7}, {0}},
               {{4, 5}, {1, 0}, {2, 5}},
               {{4, 5}, {0, 1}, {4, 3}},
               {{4, 5}, {3, 4}, {1, 1}},
               {{3, 4, 5}, {1, 1, 1}, {2, 2, 3}},
               {{3, 4, 5}, {0, 1, 0}, {3, 2, 5}},
               {{3, 4, 5}, {1, 0, 2}, {2, 4, 2}},
               {{2, 3, 4, 5, 6}, {0, 1, 0, 2, 0}, {2, 1, 4, 2, 6}},
               {{300, 500}, {20, 16}, {200, 301}},
               {{0, 3}, {0, 1}, {0, 2}},
               {{5, 0}, {1, 0}, {3, 0}}};
  for (const auto& c : cases) {
    INFO(to_string(c.size) << " of " << to_string(c.whole) << " at " << to_string(c.begin));
    any_array x = moderate<T>(c.whole), expected(dtype_of<T>, c.size),
              padded = filled<T>(c.whole, {static_cast<T>(1)});
    dims index = dims::filled(c.size.rank(), 0);
    for (std::int64_t i = 0; i < expected.elements(); ++i) {
      std::int64_t at = 0;
      for (int d = 0; d < index.rank(); ++d) at = at * c.whole[d] + c.begin[d] + index[d];
      expected.mutable_data<T>()[i] = padded.mutable_data<T>()[at] = x.data<T>()[at];
      for (int d = index.rank(); d-- > 0 && ++index[d] == c.size[d];) index[d] = 0;
    }
    CHECK(identical(run_op(op::slice{c.begin, c.size}, {x}), expected));
    CHECK(
        identical(run_op(op::slice{c.begin, {}}, {x, any_array(dtype::uint8, c.size)}), expected));
    dims behind;
    for (int d = 0; d < c.whole.rank(); ++d) behind.push_back(c.whole[d] - c.begin[d] - c.size[d]);
    CHECK(identical(run_op(op::pad{c.begin, behind, 1}, {expected}), padded));
    CHECK(identical(run_op(op::pad{c.begin, {}, 1}, {expected, any_array(dtype::uint8, c.whole)}),
                    padded));
  }
}

TEST_CASE("size_of counts the elements along axes") {
  any_array x = moderate<float>({2, 3, 4});
  CHECK(run_op(op::size_of{{0, 2}}, {x}).data<std::int64_t>()[0] == 8);
  CHECK(run_op(op::size_of{{}}, {x}).data<std::int64_t>()[0] == 1);
}
