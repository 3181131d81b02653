// SPDX-License-Identifier: Apache-2.0
#include <deft/op/avg_pool.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/max_pool.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::type_of;

TEST_CASE_FIXTURE(testing::own_graph, "the extents of a pooling follow from types") {
  placeholder<float, dyn, 28, 27, 3> x("x");
  static_assert(std::is_same_v<decltype(max_pool(x, window<2>)), tensor<float, dyn, 14, 13, 3>>);
  static_assert(std::is_same_v<decltype(avg_pool(x, window<2>, padding::same)),
                               tensor<float, dyn, 14, 14, 3>>);
  static_assert(std::is_same_v<decltype(max_pool(x, window<3>, stride<2>, padding::same)),
                               tensor<float, dyn, 14, 14, 3>>);
  static_assert(std::is_same_v<decltype(max_pool(x, window<3, 1>, stride<1, 4>)),
                               tensor<float, dyn, 26, 7, 3>>);
  CHECK(same(any_tensor(max_pool(x, window<2>)), max_pool(x, {.window = {2, 2}})));
  CHECK(same(avg_pool(x, window<3>, stride<2>, padding::same),
             avg_pool(x, {.window = {3, 3}, .stride = {2, 2}, .padding = padding::same})));
  CHECK(type_of(max_pool(any(dtype::float32, {dyn, dyn, 9, dyn}), window<2>)) == "float(?,?,4,?)");
}

TEST_CASE_FIXTURE(testing::own_graph, "errors of poolings") {
  auto check = [](auto f, std::string_view text) {
    const std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
  };
  const any_tensor x = any(dtype::float32, {2, 4, 9, 3});
  check(
      [&] {
        max_pool(any(dtype::float32, {4, 9, 3}), window<2>);
      },
      "[max_pool] expects images (batch, height, width, channels), and got (4,9,3)");
  check([&] { avg_pool(x, window<5>); },
        "[avg_pool] windows of (5,5) do not fit into images of (2,4,9,3) without padding: use "
        "padding::same, or smaller ones");
  check(
      [&] {
        max_pool(x, {.window = {2, 0}});
      },
      "[max_pool] expects windows of 1 or more along height and width, and got (2,0)");
  check(
      [&] {
        max_pool(x, {.window = {-1, 1}});
      },
      "[max_pool] expects windows of 1 or more along height and width, and got (-1,1)");
  check([&] { avg_pool(x, {.window = {1}}); },
        "[avg_pool] expects windows (height, width), and got (1)");
  check(
      [&] {
        max_pool(x, {.window = {2, 2}, .stride = {1, -1}});
      },
      "[max_pool] expects a stride of 1 or more along height and width, and got (1,-1)");
  check(
      [&] {
        avg_pool(any(dtype::int32, {2, 4, 9, 3}), window<2>);
      },
      "[avg_pool] is not defined for int32");
}

TEST_CASE_FIXTURE(testing::own_graph, "what a gradient of max_pool is made of has its shape") {
  const any_tensor x = any(dtype::float32, {2, 4, 4, 3}), other = any(dtype::float32, {2, 4, 4, 2});
  const op::pooling windows{{2, 2}, {2, 2}, false};
  CHECK(type_of(detail::pool_gradient<op::max_pool_pick>(windows, x, x)) == "float(2,2,2,3)");
  CHECK(
      testing::error_of([&] { detail::pool_gradient<op::max_pool_pick>(windows, other, x); })
          .starts_with("invalid_argument: [max_pool_pick] expects images like float(2,4,4,3), and "
                       "got float(2,4,4,2)"));
}

TEST_CASE_FIXTURE(testing::own_graph, "a pooling's value and gradient in a session") {
  placeholder<float, 1, 2, 4, 1> x("x");
  const auto largest = max_pool(x, window<2>);
  const auto mean = avg_pool(x, window<2>);
  const auto [to_largest] = gradients(sum(largest), x);
  const auto [to_mean] = gradients(sum(mean), x);
  session s;
  const ndarray<float, 1, 2, 4, 1> v{1, 3, 0, 0, 3, 1, 0, 0};
  CHECK(s.run(largest, x = v) == ndarray<float, 1, 1, 2, 1>{3, 0});
  CHECK(s.run(mean, x = v) == ndarray<float, 1, 1, 2, 1>{2, 0});
  CHECK(s.run(to_largest, x = v) == ndarray<float, 1, 2, 4, 1>{0, 1, 1, 0, 0, 0, 0, 0});
  CHECK(s.run(to_mean, x = v)(0, 1, 3, 0) == 0.25f);
}
