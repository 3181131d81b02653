// SPDX-License-Identifier: Apache-2.0
#include <deft/train/layers_dense.hpp>

#include "differences.hpp"

using namespace deft;
using namespace testing;

TEST_CASE_FIXTURE(own_graph, "dense is x w + b, by a plain loop") {
  placeholder<double, dyn, 3> x("x");
  variable<double, 3, 2> w("w", ndarray<double, 3, 2>{1, 2, 3, 4, 5, 6});
  variable<double, 2> b("b", ndarray<double, 2>{0.5, -0.5});
  static_assert(
      std::is_same_v<decltype(tensor<double, dyn, 2>(dense(x, w, b))), tensor<double, dyn, 2>>);
  const tensor<double, dyn, 2> y = dense(x, w, b);
  const any_tensor any = dense(any_tensor(x), any_tensor(w), any_tensor(b));
  session s;
  s.run(initialize_all());
  const ndarray<double, dyn, 3> in{1, -2, 0.25, 4, 5, -6};
  const auto [typed, untyped] = s.run(y, any, x = in);
  for (int n = 0; n < 2; ++n)
    for (int o = 0; o < 2; ++o) {
      double sum = o == 0 ? 0.5 : -0.5;
      for (int i = 0; i < 3; ++i) sum += in(n, i) * (2 * i + o + 1);
      CHECK(typed(n, o) == doctest::Approx(sum));
      CHECK(untyped.data<double>()[2 * n + o] == typed(n, o));
    }
}

TEST_CASE_FIXTURE(own_graph, "dense makes its variables once for each name") {
  placeholder<float, dyn, 4> x("x");
  const tensor<float, dyn, 8> h = dense<8>(x, "fc", {.activation = relu});
  const any_tensor again = dense(x, 8, "fc", {.activation = relu});
  CHECK(same(h, again));
  CHECK(g.variables().size() == 2);
  CHECK(any_variable(g.find_variable("fc/kernel")).shape() == dims{4, 8});
  CHECK(any_variable(g.find_variable("fc/bias")).shape() == dims{8});
  any_tensor in_scope, outside, bare;
  {
    const auto scope = name_scope("tower_1");
    in_scope = dense(x, 8, "fc");
    outside = dense(x, 8, "fc", {.shared = true});
    bare = dense(x, 5, "bare", {.bias = false});
  }
  CHECK(g.find_variable("tower_1/fc/kernel"));
  CHECK(same(outside, dense(x, 8, "fc")));
  CHECK(!g.find_variable("tower_1/bare/bias"));
  CHECK(type_of(bare) == "float(?,5)");
  CHECK(g.variables().size() == 5);

  session s;
  s.run(initialize_all());
  const auto w = s.run(any_tensor(any_variable(g.find_variable("fc/kernel"))));
  double largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max<double>(largest, std::abs(w.data<float>()[i]));
  CHECK(largest <= std::sqrt(6. / 12));
  CHECK(largest > 0.8 * std::sqrt(6. / 12));
}

TEST_CASE_FIXTURE(own_graph, "dense takes activations, initializers and more axes") {
  placeholder<float, dyn, 3, 2> x("x");
  const tensor<float, dyn, 3, 2> y =
      dense<2>(x, "fc",
               {.activation = [](const any_tensor& t) { return t * 2; },
                .initializer = initializer(ndarray<float, 2, 2>{1, 2, 3, 4}),
                .bias_initializer = initializer(0.5f)});
  session s;
  s.run(initialize_all());
  const ndarray<float, dyn, 3, 2> v = s.run(y, x = ndarray<float, dyn, 3, 2>{1, 0, 0, 1, 1, 1});
  CHECK(v == ndarray<float, dyn, 3, 2>{3, 5, 7, 9, 9, 13});
  CHECK(type_of(dense(any(dtype::float64, {4, 3, 7}), 5, "wide")) == "double(4,3,5)");
  placeholder<float, dyn, dyn, 2> sequences("sequences");  // a batch of sequences of one length
  const tensor<float, dyn, dyn, 2> z =
      dense<2>(sequences, "fc2", {.initializer = initializer(ndarray<float, 2, 2>{1, 2, 3, 4})});
  s.run(initialize_all());
  CHECK(ndarray<float, dyn, dyn, 2>(
            s.run(z, sequences = {{{1, 0}, {0, 1}, {1, 1}}, {{2, 0}, {0, 2}, {2, 2}}})) ==
        ndarray<float, dyn, dyn, 2>{{{1, 2}, {3, 4}, {4, 6}}, {{2, 4}, {6, 8}, {8, 12}}});
}

TEST_CASE("gradients of dense agree with central differences") {
  check_differences({numbers({3, 4}), numbers({4, 2}), numbers({2})},
                    [](const std::vector<any_tensor>& x) { return tanh(dense(x[0], x[1], x[2])); });
  own_graph own;
  placeholder<double, dyn, 3> x("x");
  const any_tensor y = dense<2>(x, "fc", {.activation = sigmoid});
  check_differences(y, {{x, numbers({4, 3})},
                        {any_variable(own.g.find_variable("fc/kernel")), numbers({3, 2})},
                        {any_variable(own.g.find_variable("fc/bias")), numbers({2})}});
  placeholder<double, dyn, dyn, 3> sequences("sequences");
  check_differences(dense<2>(sequences, "fc", {.activation = sigmoid}),
                    {{sequences, numbers({2, 3, 3})},
                     {any_variable(own.g.find_variable("fc/kernel")), numbers({3, 2})},
                     {any_variable(own.g.find_variable("fc/bias")), numbers({2})}});
}

TEST_CASE_FIXTURE(own_graph, "errors of dense") {
  placeholder<float, dyn, 4> x("x");
  const any_tensor y = dense(x, 8, "fc");
  check_error(
      [&] { dense(x, 9, "fc"); },
      "invalid_argument: [dense] the variable fc/kernel is float(4,8), made at test_layers");
  check_error([&] { dense(x, 0, "none"); }, "invalid_argument: [dense] expects units, and got 0");
  check_error([&] { dense(x, 3, ""); },
              "invalid_argument: [dense] expects a name for its variables");
  check_error(
      [&] {
        dense(any(dtype::float32, {4, dyn}), 3, "unknown");
      },
      "invalid_argument: [dense] expects a tensor whose last extent is known, as the variables' "
      "shapes depend on it, and got float(4,?): use ensure_shape(x, {dyn, N})");
  CHECK(dense(ensure_shape(any(dtype::float32, {4, dyn}), {dyn, 3}), 3, "known").shape() ==
        dims{4, 3});
  check_error(
      [&] {
        dense(any(dtype::int32, {4, 3}), 3, "integers");
      },
      "invalid_argument: [dense] expects a floating tensor");
}
