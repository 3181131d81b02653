// SPDX-License-Identifier: Apache-2.0
#include <deft/op/constant.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::maker;

namespace {
any_array value_of(const any_tensor& t) { return std::get<any_array>(maker(t).attributes[0]); }
}  // namespace

TEST_CASE_FIXTURE(testing::own_graph, "constants are written in braces") {
  auto v = constant({1.f, 2.f, 3.f});
  auto m = constant({{1, 2, 3}, {4, 5, 6}});
  auto c = constant({{{1.0}, {2.0}}, {{3.0}, {4.0}}});
  static_assert(std::is_same_v<decltype(v), tensor<float, 3>>);
  static_assert(std::is_same_v<decltype(m), tensor<std::int32_t, 2, 3>>);
  static_assert(std::is_same_v<decltype(c), tensor<double, 2, 2, 1>>);
  static_assert(std::is_same_v<decltype(constant({5})), tensor<std::int32_t, 1>>);
  static_assert(std::is_same_v<decltype(constant({1LL, 2LL})), tensor<std::int64_t, 2>>);
  static_assert(std::is_same_v<decltype(constant({true, false})), tensor<bool, 2>>);
  static_assert(std::is_same_v<decltype(constant(0.5f)), tensor<float>>);
  static_assert(std::is_same_v<decltype(constant(3)), tensor<std::int32_t>>);
  static_assert(std::is_same_v<decltype(constant<float>({1, 2})), tensor<float, 2>>);
  CHECK(value_of(m) == ndarray<std::int32_t, 2, 3>{1, 2, 3, 4, 5, 6}.array());
  CHECK(value_of(c) == ndarray<double, 2, 2, 1>{1, 2, 3, 4}.array());
}

TEST_CASE_FIXTURE(testing::own_graph, "equal constants are one node") {
  CHECK(same(constant({1, 2}), constant({1, 2})));
  CHECK_FALSE(same(constant({1, 2}), constant({1, 3})));
  CHECK_FALSE(same(any_tensor(constant({1, 2})), any_tensor(constant({{1, 2}}))));
  CHECK_FALSE(same(constant(0.f), constant(-0.f)));
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "a constant does not change when the array that it was made from does") {
  ndarray<float, dyn> a{1, 2, 3};
  auto c = constant(a);
  static_assert(std::is_same_v<decltype(c), tensor<float, dyn>>);
  CHECK(c.handle().type().shape == dims{3});
  a(0) = 7;
  CHECK(value_of(c).span<float>()[0] == 1);

  float mine[] = {1, 2};
  auto viewed = constant(ndarray<float, 2>::view(mine));
  mine[0] = 7;
  CHECK(value_of(viewed).span<float>()[0] == 1);

  auto moved = ndarray<float, 2>{5, 6};
  const float* where = moved.data();
  CHECK(value_of(constant(std::move(moved))).data<float>() == where);

  any_array any = any_array::scalar(4.f);
  auto kept = constant(any);
  *any.mutable_data<float>() = 7;
  CHECK(value_of(kept).span<float>()[0] == 4);
}

TEST_CASE_FIXTURE(testing::own_graph, "a constant of a vector, array or span") {
  auto c = constant(std::vector<float>{1, 2, 3});
  static_assert(std::is_same_v<decltype(c), tensor<float, dyn>>);
  CHECK(testing::type_of(c) == "float(3)");
  CHECK(value_of(c).span<float>()[2] == 3);
  const std::array<int, 2> pair{4, 5};
  static_assert(std::is_same_v<decltype(constant(pair)), tensor<int, 2>>);
  CHECK(value_of(constant(pair)).span<int>()[1] == 5);
  CHECK(testing::type_of(constant(std::span(pair).first(1))) == "int32(1)");
  CHECK(testing::type_of(constant(std::vector<long long>{1})) == "int64(1)");
  auto b = constant(std::vector<bool>{true, false});
  static_assert(std::is_same_v<decltype(b), tensor<bool, dyn>>);
  CHECK(value_of(b).span<bool>()[0]);
}
