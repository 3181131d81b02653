// SPDX-License-Identifier: Apache-2.0
#include <deft/op/gradients.hpp>
#include <deft/op/matmul.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::any;
using testing::error_of;
using testing::maker;
using testing::own_graph;
using testing::type_of;

TEST_CASE_FIXTURE(own_graph, "matmul has the same rule at compile time and at run time") {
  placeholder<float, dyn, 4> a("a");
  placeholder<float, 4, 5> b("b");
  static_assert(std::is_same_v<decltype(matmul(a, b)), tensor<float, dyn, 5>>);
  static_assert(std::is_same_v<decltype(ext::matmul_tn(a, a)), tensor<float, 4, 4>>);
  static_assert(std::is_same_v<decltype(ext::matmul_nt(a, a)), tensor<float, dyn, dyn>>);
  CHECK(same(any_tensor(ext::matmul_tn(a, a)), matmul(any_tensor(a), any_tensor(a), true, false)));
  placeholder<float, 7, 1, 3, 4> c("c");
  placeholder<float, dyn, 4, 6> d("d");
  placeholder<float, dyn, 6, 4> e("e");
  static_assert(std::is_same_v<decltype(matmul(c, d)), tensor<float, 7, dyn, 3, 6>>);
  static_assert(std::is_same_v<decltype(matmul(d, e)), tensor<float, dyn, 4, 4>>);
  static_assert(std::is_same_v<decltype(matmul(c, b)), tensor<float, 7, 1, 3, 5>>);
  static_assert(std::is_same_v<decltype(ext::matmul_tn(e, e)), tensor<float, dyn, 4, 4>>);
  static_assert(std::is_same_v<decltype(ext::matmul_nt(c, e)), tensor<float, 7, dyn, 3, 6>>);
  CHECK(type_of(matmul(any_tensor(c), any_tensor(d))) == "float(7,?,3,6)");
  CHECK(same(any_tensor(matmul(c, d)), matmul(any_tensor(c), any_tensor(d))));
}

TEST_CASE_FIXTURE(own_graph, "a vector is a row in front and a column behind") {
  placeholder<float, 4> v("v");
  placeholder<float, dyn, 4> a("a");
  placeholder<float, 4, 5> b("b");
  placeholder<float, dyn, 3, 4, 5> c("c");
  static_assert(std::is_same_v<decltype(matmul(v, v)), tensor<float>>);
  static_assert(std::is_same_v<decltype(matmul(v, b)), tensor<float, 5>>);
  static_assert(std::is_same_v<decltype(matmul(a, v)), tensor<float, dyn>>);
  static_assert(std::is_same_v<decltype(matmul(v, c)), tensor<float, dyn, 3, 5>>);
  CHECK(type_of(matmul(any_tensor(v), any_tensor(c))) == "float(?,3,5)");
  CHECK(type_of(matmul(any_tensor(a), any_tensor(v))) == "float(?)");
  CHECK(same(any_tensor(matmul(v, b)), matmul(any_tensor(v), any_tensor(b), false, false)));
  session s;
  const auto [p, q, r] = s.run(
      matmul(v, v), matmul(v, b), matmul(a, v), v = {1, 2, 3, 4}, a = {{1, 0, 0, 0}, {0, 0, 0, 2}},
      b = {{1, 0, 0, 0, 1}, {0, 1, 0, 0, 1}, {0, 0, 1, 0, 1}, {0, 0, 0, 1, 1}});
  CHECK(p == 30);
  CHECK(q == ndarray<float, 5>{1, 2, 3, 4, 10});
  CHECK(r == ndarray<float, dyn>{1, 8});
}

TEST_CASE_FIXTURE(own_graph, "operands that do not match are refused with both shapes") {
  const auto refused = [](const dims& a, const dims& b, bool ta = false, bool tb = false) {
    const std::string all =
        error_of([&] { matmul(any(dtype::float32, a), any(dtype::float32, b), ta, tb); });
    return all.substr(0, all.find(", node"));
  };
  const std::string at = "invalid_argument: [matmul] ";
  CHECK(refused({dyn, 4}, {785, 10}) == at + "inner extents differ: (?,4) x (785,10)");
  CHECK(refused({3, 2, 4}, {3, 5, 4}) == at + "inner extents differ: (3,2,4) x (3,5,4)");
  CHECK(refused({3, 4, 2}, {2, 5}, true, true) == at + "inner extents differ: (3,4,2)T x (2,5)T");
  CHECK(refused({4}, {5, 3}) == at + "inner extents differ: (4) x (5,3)");
  CHECK(refused({3, 4}, {5}) == at + "inner extents differ: (3,4) x (5)");
  CHECK(refused({2, 5, 3, 4}, {3, 1, 4, 6}) ==
        at + "leading extents differ on axis -4, and none is 1: (2,5,3,4) x (3,1,4,6)");
  CHECK(refused({2, 3, 4}, {5, 4, 6}) ==
        at + "leading extents differ on axis -3, and none is 1: (2,3,4) x (5,4,6)");
  const std::string takes =
      "takes matrices, batches of them, and vectors where nothing is "
      "transposed: ";
  CHECK(refused({}, {3, 4}) == at + takes + "() x (3,4)");
  CHECK(refused({3}, {3, 4}, true) == at + takes + "(3)T x (3,4)");
}

TEST_CASE_FIXTURE(own_graph, "what only a run knows of a batch it checks") {
  placeholder<float, dyn, 2, 3> a("a");
  placeholder<float, dyn, 3, 2> b("b");
  session s;
  const auto run = [&](std::int64_t n, std::int64_t m) {
    return s.run(matmul(a, b), feed(a, any_array(dtype::float32, {n, 2, 3})),
                 feed(b, any_array(dtype::float32, {m, 3, 2})));
  };
  CHECK(run(4, 4).array().shape() == dims{4, 2, 2});
  CHECK(run(4, 1).array().shape() == dims{4, 2, 2});
  CHECK(run(1, 0).array().shape() == dims{0, 2, 2});
  CHECK(error_of([&] { run(4, 3); })
            .starts_with("invalid_argument: [matmul] leading extents differ on axis -3, and none "
                         "is 1: (4,2,3) x (3,3,2)"));
}

TEST_CASE_FIXTURE(own_graph, "one matrix for a batch has one product as its gradient") {
  placeholder<float, dyn, 7, 4> x("x");
  variable<float, 4, 5> w("w", zeros());
  const auto [dx, dw] = gradients(sum(square(matmul(x, w))), x, w);
  const ext::node& product = maker(dw);
  CHECK(product.def->name == "matmul");
  CHECK(product.inputs()[0].type().shape == dims{dyn, 4});
  CHECK(product.inputs()[1].type().shape == dims{dyn, 5});
  CHECK(maker(dx).def->name == "matmul");
  // Also with axes in front that both have.
  const any_tensor y = any(dtype::float32, {2, 6, 7, 4}), u = any(dtype::float32, {2, 1, 4, 5});
  const auto [dy, du] = gradients(sum(square(matmul(y, u))), y, u);
  CHECK(du.shape() == dims{2, 1, 4, 5});
  CHECK(maker(du).def->name == "reshape");
  CHECK(maker(any_tensor(maker(du).inputs()[0])).inputs()[0].type().shape == dims{2, 42, 4});
}
