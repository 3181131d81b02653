// SPDX-License-Identifier: Apache-2.0
#include <deft/expr.hpp>
#include <deft/op/gradients.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::own_graph;
using tensors = std::vector<any_tensor>;

TEST_CASE_FIXTURE(own_graph, "gradients have the types of their tensors") {
  placeholder<float, dyn, 3> x("x");
  placeholder<float, 3> b("b");
  auto loss = sum(x * b);
  auto [dx, db] = gradients(loss, x, b);
  static_assert(std::is_same_v<decltype(dx), tensor<float, dyn, 3>>);
  static_assert(std::is_same_v<decltype(db), tensor<float, 3>>);
  session s;
  ndarray<float, 2, 3> xs{1, 2, 3, 4, 5, 6};
  ndarray<float, 3> bs{10, 20, 30};
  CHECK(bool(s.run(db, loss, x = xs, b = bs) == std::tuple(ndarray<float, 3>{5, 7, 9}, 460.f)));
}

TEST_CASE_FIXTURE(own_graph, "gradients of a list of tensors, or a vector, are any_tensors") {
  variable<float, 2> w("w", {1, 2});
  any_variable b("b", {2}, 3.f), unused("unused", {2}, 1.f);
  const any_tensor loss = sum(w * b);
  session s;
  s.run(initialize_all());
  for (const tensors& d :
       {gradients(loss, {w, b, unused}), gradients(loss, std::vector<any_variable>{w, b, unused}),
        gradients(loss, tensors{w, b, unused})}) {
    REQUIRE(d.size() == 3);
    CHECK(s.run(d[0]) == ndarray<float, 2>{3, 3}.array());
    CHECK(s.run(d[1]) == ndarray<float, 2>{1, 2}.array());
    CHECK(s.run(d[2]) == ndarray<float, 2>{0, 0}.array());
  }
  CHECK(gradients(loss, tensors{}).empty());
}

TEST_CASE_FIXTURE(own_graph, "dyn extents that are 1 at run time are summed over") {
  placeholder<float, dyn> a("a"), b("b");
  auto loss = sum(a * b);
  auto [da, db] = gradients(loss, a, b);
  session s;
  ndarray<float, 1> one{2};
  ndarray<float, 3> three{1, 2, 3};
  CHECK(s.run(da, a = one, b = three) == ndarray<float, dyn>{6});
  CHECK(s.run(da, a = three, b = one) == ndarray<float, dyn>{2, 2, 2});
  CHECK(s.run(db, a = three, b = one) == ndarray<float, dyn>{6});
  CHECK(s.run(da, a = three, b = three) == ndarray<float, dyn>{1, 2, 3});
}

TEST_CASE_FIXTURE(own_graph, "a shared subexpression is differentiated once, and summed") {
  placeholder<float> x("x");
  tensor<float> y(x);
  for (int i = 0; i < 20; ++i) {
    any_tensor doubled = any_tensor(y) + any_tensor(y);
    y = tensor<float>(doubled);
  }
  auto nodes = g.size();
  auto [dx] = gradients(y, x);
  CHECK(g.size() < nodes + 100);
  session s;
  auto [slope, value] = s.run(dx, y, x = 1.f);
  CHECK(slope == 1048576.f);
  CHECK(value == 1048576.f);
}

TEST_CASE_FIXTURE(own_graph, "a fused expression is differentiated through its operations") {
  placeholder<float, 2> x("x"), w("w");
  auto inside = x * w;
  tensor<float, 2> y = exp(inside) * 2 + inside;
  REQUIRE(y.handle().node->def->name == "fused");
  auto [dx, dw, di] = gradients(y, x, w, inside);
  session s;
  const float e = std::exp(1.f);
  auto [gx, gw, gi] = s.run(dx, dw, di, x = ndarray<float, 2>{0, 1}, w = ndarray<float, 2>{3, 1});
  CHECK(gx(0) == doctest::Approx(9));
  CHECK(gx(1) == doctest::Approx(2 * e + 1));
  CHECK(gw(0) == 0);
  CHECK(gi(0) == 3);
  CHECK(gi(1) == doctest::Approx(2 * e + 1));
}

TEST_CASE_FIXTURE(own_graph, "tensors that the loss does not depend on have zero gradients") {
  placeholder<float, dyn, 2> x("x"), other("other");
  auto loss = sum(x) + sum(stop_gradient(other) * 3);
  auto [dx, dother] = gradients(loss, x, other);
  session s;
  ndarray<float, dyn, 2> v{1, 2, 3, 4};
  CHECK(s.run(dother, other = v) == ndarray<float, dyn, 2>{0, 0, 0, 0});
  CHECK(s.run(dx, x = v) == ndarray<float, dyn, 2>{1, 1, 1, 1});
  tensors xs{other};
  CHECK_FALSE(plan::gradients(loss, xs)[0].valid());
}

TEST_CASE_FIXTURE(own_graph, "a loss that is not a scalar counts as the sum of its elements") {
  placeholder<float, dyn> x("x");
  auto [dx] = gradients(x * x, x);
  session s;
  CHECK(s.run(dx, x = ndarray<float, 3>{1, 2, 3}) == ndarray<float, dyn>{2, 4, 6});
}

TEST_CASE_FIXTURE(own_graph, "a loss may be differentiated with respect to itself, and twice") {
  placeholder<float> x("x");
  tensor<float> y = x * x * x;
  auto [dy] = gradients(y, y);
  auto [dx] = gradients(y, x);
  auto [ddx] = gradients(dx, x);
  session s;
  CHECK(bool(s.run(dy, y, x = 2.f) == std::tuple(1.f, 8.f)));
  CHECK(bool(s.run(dx, ddx, x = 2.f) == std::tuple(12.f, 12.f)));
}

TEST_CASE_FIXTURE(own_graph, "ties go to the first, and relu has no slope at 0") {
  placeholder<float, 3> x("x"), y("y");
  auto [mx, my] = gradients(maximum(x, y), x, y);
  auto [nx, ny] = gradients(minimum(x, y), x, y);
  auto [rx] = gradients(relu(x), x);
  auto [top] = gradients(max(x), x);
  session s;
  ndarray<float, 3> v{0, 0, 0}, ones{1, 1, 1}, none, first{1, 0, 0};
  CHECK(bool(s.run(mx, my, nx, ny, x = v, y = v) == std::tuple(ones, none, ones, none)));
  CHECK(bool(s.run(rx, top, x = v) == std::tuple(none, first)));
}

TEST_CASE_FIXTURE(own_graph, "every read of a variable counts") {
  variable<float> v("v", 3.f);
  auto up = v.assign_add(1.f);
  tensor<float> later = [&] {
    auto after = control_dependencies(up);
    return v.read();
  }();
  tensor<float> loss = later * later + v;
  auto [dv] = gradients(loss, v);
  auto [dlater] = gradients(loss, later);
  session s;
  s.run(initialize_all());
  CHECK(s.run(dv) == 9.f);
  CHECK(s.run(dlater) == 10.f);
}

TEST_CASE_FIXTURE(own_graph, "operations that cannot be differentiated are errors that say why") {
  placeholder<float, 2, 3> x("x");
  placeholder<std::int32_t, 2> i("i");
  variable<float, 2> v("v", zeros());
  auto says = [](auto f, std::string_view text) {
    std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with(text));
    CHECK(e.find("test_gradients.cpp:") != std::string::npos);
  };
  says([&] { gradients(argmax(x, axis<1>), x); },
       "invalid_argument: [gradients] the loss is int64; expected a floating dtype");
  says([&] { gradients(sum(x), i); },
       "invalid_argument: [gradients] cannot differentiate with respect to int32; "
       "expected a floating dtype");
  tensor<float, 2> row = sum(x, axis<1>);
  says([&] { gradients(v.assign(row).value(), x); }, "unimplemented: [assign] has no gradient");
  auto [slope] = gradients(softmax_cross_entropy(x, i), x);
  any_tensor second(output{slope.handle().node, 1});
  says([&] { gradients(second, x); },
       "unimplemented: [softmax_cross_entropy_grad] has no gradient through its output 1");
}

TEST_CASE_FIXTURE(own_graph, "the second derivatives of pow are right where the exponent is 0") {
  placeholder<double, dyn> x("x"), y("y");
  const auto [dx, dy] = gradients(sum(pow(x, y)), x, y);
  const auto [dxx, dxy] = gradients(sum(dx), x, y);
  const auto [dyx, dyy] = gradients(sum(dy), x, y);
  const ndarray<double, dyn> of_x{2, 2, 2, 0.5, -2, 0, 0, 0}, of_y{1e-9, 0, -1e-9, 0, 0, 0, 1, 2};
  session s;
  const auto near = [&](const auto& t, const std::vector<double>& expected) {
    const ndarray<double, dyn> got = s.run(t, x = of_x, y = of_y);
    REQUIRE(got.size() == 8);
    for (std::int64_t i = 0; i < 8; ++i) {
      CAPTURE(i);
      CHECK(got(i) ==
            doctest::Approx(expected[static_cast<std::size_t>(i)]).epsilon(1e-7).scale(1));
    }
  };
  near(dx, {0, 0, 0, 0, 0, 0, 1, 0});
  near(dxx, {0, 0, 0, 0, 0, 0, 0, 2});
  near(dxy, {0.5, 0.5, 0.5, 2, -0.5, 0, 1, 0});
  near(dyx, {0.5, 0.5, 0.5, 2, 0, 0, 0, 0});
  // Not as a list of constants: g++ 12 stores eight times the first one with AVX-512.
  std::vector<double> squares(8, 0);
  std::fill_n(squares.begin(), 4, std::log(2.) * std::log(2.));
  near(dyy, squares);
  // Also as floats, and for one exponent of all.
  placeholder<float, 3> z("z");
  placeholder<float> e("e");
  const auto [dz] = gradients(sum(pow(z, e)), z);
  const auto [dze] = gradients(sum(dz), e);
  const auto [dzz] = gradients(sum(dz), z);
  CHECK(s.run(dze, z = {4, 2, 0}, e = 0.f) == doctest::Approx(0.75));
  CHECK(s.run(dzz, z = {4, 2, 0}, e = 0.f) == ndarray<float, 3>{0, 0, 0});
}

TEST_CASE_FIXTURE(own_graph, "a loss of rows without classes has gradients") {
  placeholder<float, 3, 0> x("x"), y("y");
  const auto loss = softmax_cross_entropy(x, y);
  const auto [dx, dy] = gradients(sum(loss), x, y);
  session s;
  const ndarray<float, 3, 0> none;
  CHECK(s.run(loss, x = none, y = none) == ndarray<float, 3>{0, 0, 0});
  CHECK(s.run(any_tensor(dx), x = none, y = none).elements() == 0);
  CHECK(s.run(any_tensor(dy), x = none).elements() == 0);  // labels do not change it
}

TEST_CASE_FIXTURE(own_graph, "the gradient of sigmoid keeps its bits where the value is almost 1") {
  placeholder<float, 5> x("x");
  const auto [dx] = gradients(sum(sigmoid(x)), x);
  session s;
  const ndarray<float, 5> at{-40, -20, 0, 20, 40};
  const auto d = s.run(dx, x = at);
  for (int i = 0; i < 5; ++i) {
    const double e = std::exp(-std::abs(static_cast<double>(at(i))));
    CHECK(d(i) == doctest::Approx(e / ((1 + e) * (1 + e))).epsilon(1e-6));
  }
}

TEST_CASE_FIXTURE(own_graph, "a gradient is computed on the device of its operation") {
  placeholder<float, 2, 2> x("x");
  any_tensor y = on(device("/gpu:1"), [&] { return any_tensor(matmul(x, x)); });
  auto [dx] = gradients(sum(y), any_tensor(x));
  std::size_t products = 0;
  flat_graph f = flatten(std::vector{dx.handle()}, {});
  for (const auto& n : f.graph.nodes)
    if (n.op->name == "matmul") {
      ++products;
      REQUIRE(n.requested);
      CHECK(to_string(*n.requested) == "/gpu:1");
      CHECK(n.name.str().starts_with("gradients/"));
    }
  CHECK(products == 2);
}
