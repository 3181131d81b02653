// SPDX-License-Identifier: Apache-2.0
#include <deft/op/compute_in.hpp>
#include <deft/op/conv2d.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/matmul.hpp>
#include <deft/op/sum.hpp>
#include <deft/session/session.hpp>

#include "kernels/arrays.hpp"
#include "op/modeling.hpp"
#include "testing.hpp"

using namespace deft;

namespace {

template <class X>
std::string op_of(const X& x) {
  return std::string(any_tensor(x).handle().node->def->name);
}
template <class X>
any_tensor operand_of(const X& x) {
  return any_tensor(any_tensor(x).handle().node->inputs()[0]);
}

}  // namespace

TEST_CASE_FIXTURE(testing::own_graph,
                  "products are rounded to the type of the scope, and stay float") {
  placeholder<float, 5, 300> a("a");
  placeholder<float, 300, 4> b("b");
  tensor<float, 5, 4> in_half, nested;
  {
    auto half = compute_in<bfloat16>();
    in_half = matmul(a, b);
    auto ends = compute_in<float>();
    nested = matmul(a, b);
  }
  const auto by_hand = cast<float>(matmul(cast<bfloat16>(a), cast<bfloat16>(b)));
  const auto outside = matmul(a, b);
  session s;
  const ndarray<float, 5, 300> x(testing::moderate<float>({5, 300}, 1));
  const ndarray<float, 300, 4> y(testing::moderate<float>({300, 4}, 2));
  const auto [h, e, n, o] = s.run(in_half, by_hand, nested, outside, a = x, b = y);
  CHECK(h == e);
  CHECK(n == o);
  CHECK_FALSE(h == o);
  CHECK(testing::difference(any_array(h), any_array(o), 10'000, 400) == "");
}

TEST_CASE_FIXTURE(testing::own_graph, "between two products in the scope nothing is cast") {
  placeholder<float, 3, 3> a("a"), b("b"), c("c");
  auto half = compute_in<float16>();
  const auto both = matmul(matmul(a, b), c);
  CHECK(op_of(both) == "cast");
  const any_tensor product = operand_of(both);
  CHECK(op_of(product) == "matmul");
  CHECK(product.type() == dtype::float16);
  CHECK(op_of(operand_of(product)) == "matmul");
}

TEST_CASE_FIXTURE(testing::own_graph, "other dtypes and operations are not changed by the scope") {
  placeholder<double, 3, 3> d("d");
  placeholder<bfloat16, 3, 3> h("h");
  placeholder<float, 3, 3> x("x");
  auto half = compute_in<float16>();
  CHECK(op_of(matmul(d, d)) == "matmul");
  CHECK(op_of(matmul(h, h)) == "matmul");
  const tensor<float, 3, 3> y = x + x;
  CHECK(op_of(y) == "add");
  placeholder<float, 1, 4, 4, 2> image("image");
  placeholder<float, 3, 3, 2, 1> filter("filter");
  const auto convolved = conv2d(image, filter);
  CHECK(op_of(convolved) == "cast");
  CHECK(operand_of(convolved).type() == dtype::float16);
}

TEST_CASE_FIXTURE(testing::own_graph, "gradients of products in the scope are float") {
  placeholder<float, 2, 3> x("x");
  placeholder<float, 3, 2> w("w");
  tensor<float> loss;
  {
    auto half = compute_in<bfloat16>();
    loss = sum(matmul(x, w));
  }
  const auto [g] = gradients(loss, w);
  session s;
  const ndarray<float, 2, 3> v{1, 2, 3, 1.00390625f, 5, 6};  // the fourth is 1 as bfloat16
  const ndarray<float, 3, 2> got = s.run(g, x = v);
  CHECK(got == ndarray<float, 3, 2>{2, 2, 7, 7, 9, 9});
}
