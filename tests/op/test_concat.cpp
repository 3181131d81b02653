// SPDX-License-Identifier: Apache-2.0
#include <deft/op/concat.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/stack.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;
using testing::type_of;

TEST_CASE_FIXTURE(testing::own_graph, "concat adds extents along one axis") {
  placeholder<float, dyn, 3> a("a");
  placeholder<float, 4, 3> b("b");
  static_assert(std::is_same_v<decltype(concat(axis<0>, b, b * 2)), tensor<float, 8, 3>>);
  static_assert(std::is_same_v<decltype(concat(axis<0>, a, b)), tensor<float, dyn, 3>>);
  static_assert(std::is_same_v<decltype(concat(axis<-1>, a, b)), tensor<float, 4, 6>>);
  static_assert(std::is_same_v<decltype(concat(axis<1>, a)), tensor<float, dyn, 3>>);
  std::vector<any_tensor> parts{a, b};
  CHECK(same(any_tensor(concat(axis<0>, a, b)), concat(axes{-2}, parts)));
  CHECK(type_of(concat(axis<0>, a, any_tensor(b))) == "float(?,3)");
}

TEST_CASE_FIXTURE(testing::own_graph, "errors of concat") {
  any_tensor a = any(dtype::float32, {4, 3}), b = any(dtype::float32, {4, 2}),
             i = any(dtype::int32, {4, 3});
  auto check = [](auto f, std::string_view text) {
    std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
  };
  check([&] { concat(axis<0>, a, b); },
        "[concat] expects extents that agree on all axes but 0, and got (4,3) (4,2)");
  check([&] { concat(axis<2>, a, a); },
        "[concat] expects an axis of a tensor of rank 2, and got 2");
  check([&] { concat(axis<0>, a, i); }, "[concat] the operands' dtypes differ: float and int32");
  check([&] { concat(axes{0}, {}); },
        "[concat] expects one axis and one tensor at least, and got 1 and 0, node \"concat\" at "
        "test_concat.cpp:");
}

TEST_CASE_FIXTURE(testing::own_graph, "gather takes rows") {
  placeholder<float, 1000, 16> table("table");
  placeholder<std::int32_t, dyn, 5> words("words");
  static_assert(std::is_same_v<decltype(gather(table, words)), tensor<float, dyn, 5, 16>>);
  CHECK(type_of(gather(any_tensor(table), words)) == "float(?,5,16)");
  CHECK(testing::error_of([&] {
          gather(any_tensor(table), any(dtype::float32, {2}));
        }).starts_with("invalid_argument: [gather] expects int32 or int64 indices, and got float"));
  CHECK(testing::error_of([&] {
          gather(any(dtype::float32, {}), words);
        }).starts_with("invalid_argument: [gather] expects a result of rank 8 at most"));
}

TEST_CASE_FIXTURE(testing::own_graph, "one_hot adds an axis") {
  placeholder<std::int32_t, dyn> label("label");
  static_assert(std::is_same_v<decltype(one_hot<10>(label)), tensor<float, dyn, 10>>);
  static_assert(std::is_same_v<decltype(one_hot<10, double>(label)), tensor<double, dyn, 10>>);
  CHECK(same(any_tensor(one_hot<10>(label)), one_hot(label, 10)));
  CHECK(type_of(one_hot(label, 3, dtype::uint8)) == "uint8(?,3)");
  CHECK(testing::error_of([&] {
          one_hot(label, -1);
        }).starts_with("invalid_argument: [one_hot] expects a depth, and got -1"));
  CHECK(testing::error_of([&] {
          one_hot(any(dtype::float32, {}), 3);
        }).starts_with("invalid_argument: [one_hot] expects integer indices, and got float"));
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "the gradients of concat need only it where extents are known") {
  placeholder<float, dyn, 2> x("x");
  placeholder<float, dyn, 3> y("y");
  placeholder<float, dyn, 2> z("z");
  const any_tensor xs[] = {x, y}, zs[] = {x, z};
  const auto known = plan::gradients(sum(concat(axis<1>, x, y) * 3.f), xs);
  for (const auto& g : known) CHECK(maker(g).def->name == "slice");
  const auto unknown = plan::gradients(sum(concat(axis<0>, x, z) * 3.f), zs);
  for (const auto& g : unknown) CHECK(maker(g).def->name == "concat_part");
  session s;
  const auto values = s.run(known, x = {{1, 2}}, y = {{1, 2, 3}});
  CHECK(values[0] == ndarray<float, 1, 2>{3, 3}.array());
  CHECK(values[1] == ndarray<float, 1, 3>{3, 3, 3}.array());
}

TEST_CASE_FIXTURE(testing::own_graph, "no gradient flows through one_hot") {
  placeholder<float, 2, 3> x("x");
  const any_tensor picked = sum(one_hot(argmax(any_tensor(x), axes{1}), 3) * x);
  const any_tensor of[] = {x};
  session s;
  const any_array g = s.run(plan::gradients(picked, of)[0], x = {{1, 3, 2}, {9, 5, 6}});
  CHECK(g == ndarray<float, 2, 3>{0, 1, 0, 1, 0, 0}.array());
}

TEST_CASE_FIXTURE(testing::own_graph, "vectors of tensors are joined and stacked") {
  placeholder<float, 2, 3> x("x"), y("y");
  const std::vector<tensor<float, 2, 3>> typed{x, y};
  auto joined = concat(axis<1>, typed);
  static_assert(std::is_same_v<decltype(joined), tensor<float, 2, dyn>>);
  CHECK(type_of(joined) == "float(2,6)");
  auto stacked = stack(axis<-1>, typed);
  static_assert(std::is_same_v<decltype(stacked), tensor<float, 2, 3, dyn>>);
  CHECK(type_of(stacked) == "float(2,3,2)");
  const std::vector<any_tensor> loose{x, y, x};
  CHECK(type_of(concat(axis<0>, loose)) == "float(6,3)");
  CHECK(type_of(stack(axis<0>, loose)) == "float(3,2,3)");
  CHECK(testing::error_of([&] {
          stack(axis<0>, std::vector<tensor<float>>{});
        }).starts_with("invalid_argument: [stack] expects one axis and one tensor at least"));
}
