// SPDX-License-Identifier: Apache-2.0
#include <deft/op/reshape.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;
using testing::type_of;

namespace {
constexpr std::int64_t copy_of(int i) { return op::reshape::extent_of(i); }
}  // namespace

TEST_CASE("reshape's shape rule deduces one extent") {
  using fault = op::reshape::fault;
  struct {
    dims from, to;
    fault result;
    dims out;
  } cases[] = {
      {{2, 6}, {3, 4}, fault::none, {3, 4}},
      {{2, 6}, {dyn, 4}, fault::none, {3, 4}},
      {{}, {1, 1}, fault::none, {1, 1}},
      {{1}, {}, fault::none, {}},
      {{0, 3}, {0}, fault::none, {0}},
      {{0, 3}, {5, dyn}, fault::none, {5, 0}},
      {{dyn, 784}, {dyn, 28, 28}, fault::none, {dyn, 28, 28}},
      {{dyn, 784}, {10, 784}, fault::none, {10, 784}},
      {{dyn, 5, dyn}, {copy_of(0), 1, 5, copy_of(2)}, fault::none, {dyn, 1, 5, dyn}},
      {{7, 5, dyn}, {copy_of(0), 1, 5, copy_of(2)}, fault::none, {7, 1, 5, dyn}},
      {{2, 6}, {5}, fault::elements, {}},
      {{2, 6}, {dyn, 5}, fault::elements, {}},
      {{2, 6}, {dyn, 0}, fault::elements, {}},
      {{0}, {dyn, 0}, fault::elements, {}},
      {{2, 6}, {dyn, dyn}, fault::several, {}},
      {{2, 6}, {copy_of(2)}, fault::extent, {}},
      {{2, 6}, {INT64_MIN}, fault::extent, {}},
      {{2, 6}, {INT64_MAX, INT64_MAX}, fault::extent, {}},
      {{dyn, dyn, 3}, {copy_of(1), copy_of(1), 3}, fault::none, {dyn, dyn, 3}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.from);
    CAPTURE(c.to);
    dims out;
    CHECK(op::reshape{c.to}.shape(c.from, out) == c.result);
    if (c.result == fault::none) CHECK(out == c.out);
  }
}

TEST_CASE_FIXTURE(testing::own_graph, "reshape is typed") {
  placeholder<float, dyn, 784> x("x");
  placeholder<float, 100, 784> y("y");
  static_assert(
      std::is_same_v<decltype(reshape(x, shape<dyn, 28, 28>)), tensor<float, dyn, 28, 28>>);
  static_assert(
      std::is_same_v<decltype(reshape(y, shape<dyn, 28, 28>)), tensor<float, 100, 28, 28>>);
  static_assert(std::is_same_v<decltype(reshape(x, y)), tensor<float, 100, 784>>);
  static_assert(std::is_same_v<decltype(reshape(x, dims{78400})), any_tensor>);
  CHECK(same(any_tensor(reshape(x, shape<dyn, 28, 28>)), reshape(x, dims{dyn, 28, 28})));
  CHECK(same(any_tensor(reshape(y, y)), any_tensor(y)));
  any_tensor two = any(dtype::float32, {dyn, dyn});
  CHECK(maker(reshape(any_tensor(x), two)).inputs().size() == 2);
  CHECK(maker(reshape(any_tensor(x), any_tensor(y))).inputs().size() == 1);
  CHECK(testing::error_of([&] { reshape(y, dims{7}); })
            .starts_with(
                "invalid_argument: [reshape] (100,784) does not have as many elements as (7)"));
}

TEST_CASE_FIXTURE(testing::own_graph, "reshape refuses negative extents") {
  const any_tensor x = any(dtype::float32, {2, 3});
  for (const dims& to : {dims{-3, -2}, dims{-2, 3}, dims{-2}}) {
    CAPTURE(to);
    CHECK(
        testing::error_of([&] {
          reshape(x, to);
        }).starts_with(str("invalid_argument: [reshape] ", to, " is not a valid shape for (2,3)")));
  }
  CHECK(type_of(reshape(x, dims{3, dyn})) == "float(3,2)");
}

TEST_CASE_FIXTURE(testing::own_graph, "expand_dims numbers the new axes as in the result") {
  placeholder<float, dyn, 10> x("x");
  static_assert(std::is_same_v<decltype(expand_dims(x, axis<1>)), tensor<float, dyn, 1, 10>>);
  static_assert(
      std::is_same_v<decltype(expand_dims(x, axis<0, -1>)), tensor<float, 1, dyn, 10, 1>>);
  CHECK(type_of(expand_dims(any(dtype::float32, {dyn, dyn}), axes{1})) == "float(?,1,?)");
  CHECK(testing::error_of([&] {
          expand_dims(x, axes{3});
        }).starts_with("invalid_argument: [expand_dims] expects axes of a result of rank 3"));
}

TEST_CASE_FIXTURE(testing::own_graph, "broadcast_to repeats extents of 1") {
  placeholder<float, 3> x("x");
  placeholder<float, dyn, 3> like("like");
  placeholder<float> scalar("scalar");
  static_assert(std::is_same_v<decltype(broadcast_to(x, shape<4, 3>)), tensor<float, 4, 3>>);
  static_assert(
      std::is_same_v<decltype(broadcast_to(like, shape<2, dyn, 3>)), tensor<float, 2, dyn, 3>>);
  static_assert(std::is_same_v<decltype(broadcast_to(scalar, like)), tensor<float, dyn, 3>>);
  CHECK(maker(broadcast_to(scalar, like)).inputs().size() == 2);
  CHECK(maker(broadcast_to(scalar, x)).inputs().size() == 1);
  CHECK(same(broadcast_to(x, shape<3>), broadcast_to(x, shape<3>)));
  CHECK(same(any_tensor(broadcast_to(x, x)), any_tensor(x)));
  auto error = [](auto f) { return testing::error_of(f); };
  CHECK(error([&] {
          broadcast_to(x, dims{4});
        }).starts_with("invalid_argument: [broadcast_to] (3) cannot be broadcast to (4)"));
  CHECK(error([&] {
          broadcast_to(x, dims{dyn, 3});
        }).starts_with("invalid_argument: [broadcast_to] (3) cannot be broadcast to (?,3)"));
  CHECK(error([&] {
          broadcast_to(x, dims{-7, 3});
        }).starts_with("invalid_argument: [broadcast_to] (-7,3) is not a valid shape"));
  CHECK(error([&] {
          broadcast_to(scalar, dims{1 << 30, 1 << 30});
        })
            .starts_with(
                "invalid_argument: [broadcast_to] an array of (1073741824,1073741824) is larger "
                "than memory"));
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "sum_to needs the other tensor only where its shape is unknown") {
  struct {
    dims x, like;
    const char* op;
  } cases[] = {
      {{4, 3}, {4, 3}, "placeholder"},   {{4, 3}, {3}, "sum"},
      {{4, 3}, {1, 3}, "reshape"},       {{dyn, 3}, {3}, "sum"},
      {{dyn, 3}, {1, 3}, "reshape"},     {{dyn, 3}, {}, "sum"},
      {{dyn, 3}, {dyn, 3}, "sum_to"},    {{4, dyn}, {4, dyn}, "sum_to"},
      {{1, 3}, {dyn, 3}, "placeholder"}, {{5, dyn, 3}, {dyn, 1}, "sum_to"},
      {{2, 1, 3}, {dyn, 1}, "reshape"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.x);
    CAPTURE(c.like);
    any_tensor r = sum_to(any(dtype::float32, c.x), any(dtype::float32, c.like));
    CHECK(maker(r).def->name == c.op);
    CHECK(r.rank() == c.like.rank());
    CHECK(may_equal(r.shape(), c.like));
  }
  CHECK(testing::error_of([&] {
          sum_to(any(dtype::float32, {3}), any(dtype::float32, {4}));
        }).starts_with("invalid_argument: [sum_to] (4) cannot be broadcast to (3)"));
  placeholder<float, dyn, 3> x("x");
  placeholder<float, 3> b("b");
  static_assert(std::is_same_v<decltype(sum_to(x, b)), tensor<float, 3>>);
}

TEST_CASE_FIXTURE(testing::own_graph, "transpose permutes axes") {
  placeholder<float, dyn, 3, 4> x("x");
  static_assert(std::is_same_v<decltype(transpose(x)), tensor<float, 4, 3, dyn>>);
  static_assert(std::is_same_v<decltype(transpose(x, perm<0, 2, 1>)), tensor<float, dyn, 4, 3>>);
  CHECK(same(any_tensor(transpose(x, perm<0, 2, 1>)), transpose(any_tensor(x), axes{0, 2, 1})));
  CHECK(same(any_tensor(transpose(x)), transpose(any_tensor(x))));
  for (const dims& bad : {dims{0, 1}, dims{0, 1, 1}, dims{0, 1, 3}, dims{-1, 0, 1}}) {
    CAPTURE(bad);
    CHECK(testing::error_of([&] { transpose(x, axes(bad)); })
              .starts_with(str("invalid_argument: [transpose] expects a permutation of 3 axes, and "
                               "got ",
                               list_text(bad))));
  }
}
