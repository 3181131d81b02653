// SPDX-License-Identifier: Apache-2.0
#include <deft/op/base/reduction.hpp>
#include <functional>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;
using testing::type_of;

TEST_CASE_FIXTURE(testing::own_graph, "reductions have the type of the remaining axes") {
  placeholder<float, dyn, 3, 4> x("x");
  static_assert(std::is_same_v<decltype(sum(x)), tensor<float>>);
  static_assert(std::is_same_v<decltype(sum(x, axis<0>)), tensor<float, 3, 4>>);
  static_assert(std::is_same_v<decltype(mean(x, axis<0, 2>)), tensor<float, 3>>);
  static_assert(std::is_same_v<decltype(max(x, axis<-1>)), tensor<float, dyn, 3>>);
  static_assert(std::is_same_v<decltype(max(x, axis<-1>, keepdims)), tensor<float, dyn, 3, 1>>);
  static_assert(std::is_same_v<decltype(sum(x, keepdims)), tensor<float, 1, 1, 1>>);
  static_assert(std::is_same_v<decltype(sum(x, axis<>)), tensor<float, dyn, 3, 4>>);
  static_assert(std::is_same_v<decltype(sum(x * 2 + 1, axis<2, 1>)), tensor<float, dyn>>);
  static_assert(std::is_same_v<decltype(sum(x, axes{0})), any_tensor>);
  static_assert(std::is_same_v<decltype(argmax(x, axis<1>)), tensor<std::int64_t, dyn, 4>>);
  static_assert(std::is_same_v<decltype(softmax(x)), tensor<float, dyn, 3, 4>>);

  const op::sum o = decode<op::sum>(maker(sum(x, axis<2, -3>, keepdims)).attributes);
  CHECK(o.axes == dims{0, 2});
  CHECK(o.keepdims);
}

TEST_CASE_FIXTURE(testing::own_graph, "compile time and run time have one shape rule") {
  placeholder<float, dyn, 3, 4> x("x");
  any_tensor y(x);
  CHECK(same(any_tensor(sum(x)), sum(y)));
  CHECK(same(any_tensor(sum(x, axis<0, 2>)), sum(y, axes{0, 2})));
  CHECK(same(any_tensor(max(x, axis<-1>, keepdims)), max(y, axes{2}, keepdims)));
  CHECK(same(any_tensor(mean(x, axis<1>)), mean(y, axis<1>)));
  CHECK(same(any_tensor(argmax(x, axis<-1>)), argmax(y, axes{2})));
  CHECK(type_of(sum(y, axes{0, -1}, keepdims)) == "float(1,3,1)");
}

TEST_CASE_FIXTURE(testing::own_graph, "errors of reductions") {
  any_tensor f = any(dtype::float32, {4, 0}), i = any(dtype::int32, {4, 3}),
             m = any(dtype::boolean, {3});
  auto check = [](auto e, std::string_view text) {
    std::string got = testing::error_of(e);
    INFO(got);
    CHECK(got.starts_with("invalid_argument: " + std::string(text)));
  };
  check([&] { sum(i, axes{2}); },
        "[sum] expects axes of a tensor of rank 2, each once, and got (2)");
  check(
      [&] {
        sum(i, axes{1, -1});
      },
      "[sum] expects axes of a tensor of rank 2, each once, and got (1,-1)");
  check([&] { mean(i); }, "[mean] expects a floating tensor, and got int32; use cast");
  check([&] { sum(m); }, "[sum] is not defined for bool");
  check([&] { max(f, axis<1>); }, "[max] is undefined for zero elements: axis 1 of (4,0)");
  check([&] { argmax(f, axis<1>); }, "[argmax] is undefined for zero elements");
  check([&] { argmax(i, axes{0, 1}); }, "[argmax] expects one axis");
  check([&] { softmax(sum(f)); }, "[softmax] expects a last axis, and got a scalar");
  check([&] { softmax(i); }, "[softmax] is not defined for int32");
}

TEST_CASE_FIXTURE(testing::own_graph, "an error about axes names the tensor and the call's line") {
  const any_tensor a = make_placeholder("a", dtype::float32, {4, 3});
  const std::vector<any_tensor> parts{a, a};
  const source_location call{"model.cpp", 67};
  const std::function<void()> calls[] = {
      [&] { sum(a, axes{2}, keepdims, call); }, [&] { max(a, axes{-3}, keepdims, call); },
      [&] { size_of(a, axes{2}, call); },       [&] { argmax(a, axes{2}, call); },
      [&] { argmin(a, axis<-3>, call); },       [&] { expand_dims(a, axes{4}, call); },
      [&] { split(a, axes{2}, 3, call); },      [&] { split<2>(a, axis<1>, call); },
      [&] { unstack(a, axes{-3}, call); },      [&] { concat(axes{2}, parts, call); },
      [&] { stack(axes{4}, parts, call); },
  };
  for (const auto& f : calls) {
    const std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: "));
    CHECK(e.ends_with(", node \"a\" at model.cpp:67"));
  }
  CHECK(testing::error_of([&] {
          concat(axis<2>, a, a);
        }).find(", node \"a\" near test_reduction.cpp:") != std::string::npos);
}

TEST_CASE_FIXTURE(testing::own_graph, "size_of is a constant where the extents are known") {
  placeholder<float, dyn, 3, 4> x("x");
  tensor<std::int64_t> known = size_of(x, axis<1, 2>), all = size_of(x);
  CHECK(maker(known).def->name == "constant");
  CHECK(std::get<any_array>(maker(known).attributes[0]).span<std::int64_t>()[0] == 12);
  CHECK(maker(all).def->name == "size_of");
  CHECK(same(all, size_of(any_tensor(x), axes{0, 1, 2})));
}

TEST_CASE_FIXTURE(testing::own_graph, "softmax_cross_entropy takes dense and sparse labels") {
  placeholder<float, dyn, 10> logits("logits");
  placeholder<float, 32, 10> dense("dense");
  placeholder<std::int32_t, dyn> sparse("sparse");
  placeholder<std::int64_t, 32> wide("wide");
  static_assert(std::is_same_v<decltype(softmax_cross_entropy(logits, dense)), tensor<float, 32>>);
  static_assert(
      std::is_same_v<decltype(softmax_cross_entropy(logits, sparse)), tensor<float, dyn>>);
  static_assert(std::is_same_v<decltype(softmax_cross_entropy(logits, wide)), tensor<float, 32>>);
  auto loss = softmax_cross_entropy(logits, sparse);
  REQUIRE(maker(loss).outputs.size() == 1);
  CHECK(to_string(maker(loss).outputs[0]) == "float(?)");
  std::string e = testing::error_of([&] {
    softmax_cross_entropy(any_tensor(logits), any(dtype::int32, {3, 10}));
  });
  CHECK(e.starts_with("invalid_argument: [softmax_cross_entropy] expects labels like the logits"));
  e = testing::error_of(
      [&] { softmax_cross_entropy(any_tensor(logits), any(dtype::float32, {3})); });
  CHECK(e.starts_with("invalid_argument: [softmax_cross_entropy] expects classes as int32 or"));
  CHECK(e.find("use cast<std::int32_t>(labels) if these are classes") != e.npos);
}
