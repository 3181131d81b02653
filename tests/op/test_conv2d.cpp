// SPDX-License-Identifier: Apache-2.0
#include <deft/op/conv2d.hpp>
#include <deft/op/mul.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::type_of;

TEST_CASE_FIXTURE(testing::own_graph, "the extents of a convolution follow from types") {
  placeholder<float, dyn, 28, 27, 3> x("x");
  placeholder<float, 5, 4, 3, 8> w("w");
  static_assert(std::is_same_v<decltype(conv2d(x, w)), tensor<float, dyn, 24, 24, 8>>);
  static_assert(
      std::is_same_v<decltype(conv2d(x * 2, w, padding::same)), tensor<float, dyn, 28, 27, 8>>);
  static_assert(std::is_same_v<decltype(conv2d(x, w, stride<2>, padding::same)),
                               tensor<float, dyn, 14, 14, 8>>);
  static_assert(std::is_same_v<decltype(conv2d(x, w, stride<3, 1>)), tensor<float, dyn, 8, 24, 8>>);
  CHECK(same(conv2d(x, w, stride<2>, padding::same),
             conv2d(x, w, {.stride = {2, 2}, .padding = padding::same})));
  CHECK(same(any_tensor(conv2d(x, w)), conv2d(any_tensor(x), w)));

  const any_tensor images = any(dtype::float32, {dyn, dyn, 9, dyn}),
                   filters = any(dtype::float32, {dyn, 3, 4, 2});
  CHECK(type_of(conv2d(images, filters, padding::same)) == "float(?,?,9,2)");
  CHECK(type_of(conv2d(images, filters, stride<2>, padding::valid)) == "float(?,?,4,2)");
}

TEST_CASE_FIXTURE(testing::own_graph, "errors of conv2d") {
  auto check = [](const any_tensor& x, const any_tensor& filter, const conv2d_options& o,
                  std::string_view text) {
    const std::string e = testing::error_of([&] { conv2d(x, filter, o); });
    INFO(e);
    CHECK(e.starts_with("invalid_argument: [conv2d] " + std::string(text)));
  };
  const any_tensor x = any(dtype::float32, {2, 8, 9, 3}),
                   filter = any(dtype::float32, {3, 3, 3, 4});
  check(any(dtype::float32, {2, 8, 9}), filter, {},
        "expects images (batch, height, width, channels) and filters (height, width, channels, "
        "outputs), and got (2,8,9) and filters of (3,3,3,4)");
  check(x, any(dtype::float32, {3, 3, 2, 4}), {},
        "expects filters of as many channels as the images (2,8,9,3) have, and got (3,3,2,4)");
  check(x, any(dtype::float32, {9, 3, 3, 4}), {},
        "filters of (9,3,3,4) do not fit into images of (2,8,9,3) without padding");
  check(x, any(dtype::float32, {0, 3, 3, 4}), {.padding = padding::same},
        "expects filters of 1 or more along height and width, and got (0,3,3,4)");
  check(x, any(dtype::float32, {4, 3}), {},
        "expects filters (height, width, channels, outputs), and got (4,3)");
  check(x, filter, {.stride = {0, 1}},
        "expects a stride of 1 or more along height and width, and got (0,1)");
  check(x, filter, {.stride = {1}}, "expects a stride of 1 or more");
  check(x, any(dtype::float64, {3, 3, 3, 4}), {},
        "the operands' dtypes differ: float and double; use cast");
  check(any(dtype::int32, {2, 8, 9, 3}), any(dtype::int32, {3, 3, 3, 4}), {},
        "is not defined for int32");
}

TEST_CASE_FIXTURE(testing::own_graph, "extents known only at run time are checked by the run") {
  placeholder<float, dyn, dyn, dyn, 1> x("x");
  placeholder<float, 3, 3, 1, 1> w("w");
  const auto y = conv2d(x, w);
  session s;
  const ndarray<float, 3, 3, 1, 1> ones{1, 1, 1, 1, 1, 1, 1, 1, 1};
  const ndarray<float, 1, 3, 4, 1> image{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const ndarray<float, dyn, dyn, dyn, 1> sums = s.run(y, x = image, w = ones);
  CHECK(sums.size() == 2);
  CHECK(sums(0, 0, 0, 0) == 54);
  CHECK(sums(0, 0, 1, 0) == 63);
  const std::string e =
      testing::error_of([&] { s.run(y, x = ndarray<float, 1, 2, 4, 1>{}, w = ones); });
  INFO(e);
  CHECK(e.starts_with(
      "invalid_argument: [conv2d] filters of (3,3,1,1) do not fit into images of (1,2,4,1)"));
}
