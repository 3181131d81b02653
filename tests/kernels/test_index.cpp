// SPDX-License-Identifier: Apache-2.0
#include <deft/op/argmax.hpp>
#include <deft/op/argmin.hpp>
#include <deft/op/gather.hpp>
#include <deft/op/max.hpp>
#include <deft/op/min.hpp>
#include <deft/op/one_hot.hpp>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

TEST_CASE_TEMPLATE("gather takes rows, and scatter_add adds them back", I, std::int32_t,
                   std::int64_t) {
  for (const dims& shape : {dims{5}, dims{5, 3}, dims{5, 100}, dims{5, 2, 3}, dims{5, 0}}) {
    any_array x = moderate<float>(shape), index = array_of<I>({2, 3}, {4, 0, 4, 1, 3, 3});
    any_array y = run_op(op::gather(), {x, index});
    const std::int64_t n = shape.elements() / 5;
    any_array sums = filled<float>(shape, {0});
    for (std::int64_t r = 0; r < 6; ++r)
      for (std::int64_t i = 0; i < n; ++i) {
        CHECK(y.data<float>()[r * n + i] == x.data<float>()[index.data<I>()[r] * n + i]);
        sums.mutable_data<float>()[index.data<I>()[r] * n + i] += y.data<float>()[r * n + i];
      }
    CHECK(difference(run_op(op::scatter_add(), {y, index, x}), sums, 2) == "");
  }
}

TEST_CASE("indices out of range are named, with the extent") {
  any_array x = moderate<float>({5, 3});
  for (std::int64_t bad : {std::int64_t{-1}, std::int64_t{5}, std::int64_t{1} << 40}) {
    any_array index = array_of<std::int64_t>({3}, {0, bad, 1});
    CHECK(error_of([&] {
            run_op(op::gather(), {x, index});
          }) == str("out_of_range: [gather] the index ", bad, " is out of range for 5 rows"));
    any_array dz = moderate<float>({3, 3});
    CHECK(error_of([&] {
            run_op(op::scatter_add(), {dz, index, x});
          }) == str("out_of_range: [scatter_add] the index ", bad, " is out of range for 5 rows"));
  }
  any_array none(dtype::float32, {0, 3});
  CHECK(error_of([&] {
          run_op(op::gather(), {none, array_of<std::int32_t>({1}, {0})});
        }) == "out_of_range: [gather] the index 0 is out of range for 0 rows");
  CHECK(run_op(op::gather(), {none, any_array(dtype::int32, {0})}).elements() == 0);
}

TEST_CASE("one_hot is 1 at the index, and zeros for an index out of range") {
  any_array y =
      run_op(op::one_hot{3, dtype::float32}, {array_of<std::int32_t>({4}, {2, 0, -1, 3})});
  CHECK(identical(y, array_of<float>({4, 3}, {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0})));
  any_array b = run_op(op::one_hot{2, dtype::boolean}, {array_of<std::uint8_t>({2}, {1, 200})});
  CHECK(identical(b, array_of<bool>({2, 2}, {false, true, false, false})));
}

TEST_CASE_TEMPLATE("argmax and argmin are the first index along any axis", T, float, double,
                   std::int32_t, std::int64_t, std::uint8_t, std::int8_t) {
  for (const dims& shape :
       {dims{1}, dims{7}, dims{5000}, dims{20, 10}, dims{10, 200}, dims{4, 5, 6}, dims{3, 1, 2}}) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      any_array x = moderate<T>(shape);
      for (std::int64_t i = 0; i < x.elements(); ++i)  // few values, many ties
        x.mutable_data<T>()[i] = static_cast<T>(static_cast<int>(x.data<T>()[i]) % 3);
      any_array y = run_op(op::argmax{axis}, {x}), least = run_op(op::argmin{axis}, {x});
      std::int64_t inner = 1;
      for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
      for (std::int64_t i = 0; i < y.elements(); ++i) {
        const std::int64_t start = i / inner * inner * shape[axis] + i % inner;
        std::int64_t best = 0, worst = 0;
        for (std::int64_t k = 1; k < shape[axis]; ++k) {
          if (x.data<T>()[start + k * inner] > x.data<T>()[start + best * inner]) best = k;
          if (x.data<T>()[start + k * inner] < x.data<T>()[start + worst * inner]) worst = k;
        }
        REQUIRE(y.data<std::int64_t>()[i] == best);
        REQUIRE(least.data<std::int64_t>()[i] == worst);
      }
    }
  }
}

TEST_CASE("argmax, argmin, first_max and first_min take the first NaN") {
  any_array x = array_of<float>({6}, {1, 5, NAN, 7, NAN, 7});
  CHECK(run_op(op::argmax{0}, {x}).data<std::int64_t>()[0] == 2);
  CHECK(run_op(op::argmin{0}, {x}).data<std::int64_t>()[0] == 2);
  CHECK(identical(run_op(op::first_min{{0}}, {x}),
                  array_of<bool>({6}, {false, false, true, false, false, false})));
  CHECK(identical(run_op(op::first_max{{0}}, {x}),
                  array_of<bool>({6}, {false, false, true, false, false, false})));
  any_array columns = array_of<float>({3, 2}, {1, NAN, NAN, 2, 3, NAN});
  any_array at = run_op(op::argmax{0}, {columns});
  CHECK(identical(at, array_of<std::int64_t>({2}, {1, 0})));
}

TEST_CASE("first_max marks one element for each maximum, the first in order") {
  any_array x = array_of<float>({2, 3, 2}, {1, 9, 4, 2, 4, 9, 7, 7, 7, 0, 1, 8});
  CHECK(identical(run_op(op::first_max{{1}}, {x}),
                  array_of<bool>({2, 3, 2}, {false, true, true, false, false, false, true, false,
                                             false, false, false, true})));
  any_array all = run_op(op::first_max{{0, 1, 2}}, {x});
  for (int i = 0; i < 12; ++i) CHECK(all.data<bool>()[i] == (i == 1));
  CHECK(identical(run_op(op::first_max{{}}, {x}), filled<bool>({2, 3, 2}, {true})));
  CHECK(identical(run_op(op::first_min{{1}}, {x}),
                  array_of<bool>({2, 3, 2}, {true, false, false, true, false, false, false, false,
                                             false, true, true, false})));
}
