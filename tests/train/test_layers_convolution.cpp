// SPDX-License-Identifier: Apache-2.0
#include <deft/train/layers_convolution.hpp>

#include "differences.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

TEST_CASE_FIXTURE(own_graph, "a convolution makes its variables once for each name") {
  placeholder<float, dyn, 6, 8, 3> x("x");
  const tensor<float, dyn, 6, 8, 4> y = conv2d<4>(x, window<3, 5>, "conv", {.activation = relu});
  CHECK(same(y, conv2d(x, 4, {3, 5}, "conv", {.activation = relu})));
  CHECK(g.variables().size() == 2);
  CHECK(any_variable(g.find_variable("conv/kernel")).shape() == dims{3, 5, 3, 4});
  CHECK(any_variable(g.find_variable("conv/bias")).shape() == dims{4});
  const tensor<float, dyn, 2, 3, 2> less =
      conv2d<2>(x, window<3>, "less", {.bias = false}, stride<2>, padding::valid);
  CHECK(same(less, conv2d(x, 2, {3, 3}, "less", {.bias = false}, {.stride = {2, 2}})));
  CHECK(!g.find_variable("less/bias"));
  {
    const auto scope = name_scope("tower_1");
    const any_tensor z = conv2d(x, 4, {3, 5}, "conv");
    CHECK(!same(y, z));
    CHECK(g.find_variable("tower_1/conv/kernel"));
    CHECK(same(y, conv2d(x, 4, {3, 5}, "conv", {.activation = relu, .shared = true})));
  }
}

TEST_CASE_FIXTURE(own_graph, "a convolution layer is conv2d, a sum and its activation") {
  placeholder<float, 2, 4, 4, 1> x("x");
  const auto y =
      conv2d<2>(x, window<3>, "conv", {.activation = tanh, .bias_initializer = initializer(0.25f)});
  const any_variable kernel(g.find_variable("conv/kernel"));
  const any_tensor by_hand =
      tanh(conv2d(x, any_tensor(kernel), {.padding = padding::same}) + 0.25f);
  session s;
  s.run(initialize_all());
  ndarray<float, 2, 4, 4, 1> image;
  for (std::int64_t i = 0; i < image.size(); ++i) image.data()[i] = static_cast<float>(i % 7) - 3;
  const auto [a, b] = s.run(y, by_hand, x = image);
  CHECK(a.array() == b);
}

TEST_CASE_FIXTURE(own_graph, "wrong convolution layers are refused in their name") {
  placeholder<float, dyn, 6, 8, 3> x("x");
  CHECK(error_of([&] { conv2d(x, 0, {3, 3}, "a"); }).find("[conv2d]") != std::string::npos);
  CHECK(error_of([&] { conv2d(x, 4, {3}, "a"); }).find("height and width") != std::string::npos);
  CHECK(error_of([&] {
          conv2d(any(dtype::float32, {4, 3}), 4, {3, 3}, "a");
        }).find("rank 4") != std::string::npos);
  const any_tensor y = conv2d(x, 4, {3, 3}, "b");
  CHECK(error_of([&] { conv2d(x, 5, {3, 3}, "b"); }).find("b/kernel") != std::string::npos);
}
