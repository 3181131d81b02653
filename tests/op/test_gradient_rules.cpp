// SPDX-License-Identifier: Apache-2.0
#include <deft/op/gradients.hpp>
#include <deft/session/session.hpp>
#include <functional>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;

namespace {

using build = std::function<any_tensor(const any_tensor&, const any_tensor&)>;
struct differentiable {
  const char* name;
  dims x, y;
  build f;
  bool twice = true;  ///< it has a second gradient, too
};

/// Functions of two tensors, which may ignore the second.
const differentiable functions[] = {
    {"add", {4, 3}, {3}, [](auto& x, auto& y) { return x + y; }},
    {"sub", {4, 3}, {4, 1}, [](auto& x, auto& y) { return x - y; }},
    {"mul", {4, 3}, {4, 3}, [](auto& x, auto& y) { return x * y; }},
    {"div", {3}, {4, 3}, [](auto& x, auto& y) { return x / y; }},
    {"maximum", {4, 3}, {1}, [](auto& x, auto& y) { return maximum(x, y); }},
    {"minimum", {4, 3}, {}, [](auto& x, auto& y) { return minimum(x, y); }},
    {"where", {4, 3}, {3}, [](auto& x, auto& y) { return where(x > y, x, y); }},
    {"neg", {3}, {}, [](auto& x, auto&) { return -x; }},
    {"exp", {3}, {}, [](auto& x, auto&) { return exp(x); }},
    {"log", {3}, {}, [](auto& x, auto&) { return log(x); }},
    {"tanh", {3}, {}, [](auto& x, auto&) { return tanh(x); }},
    {"sigmoid", {3}, {}, [](auto& x, auto&) { return sigmoid(x); }},
    {"relu", {3}, {}, [](auto& x, auto&) { return relu(x); }},
    {"square", {3}, {}, [](auto& x, auto&) { return square(x); }},
    {"sqrt", {3}, {}, [](auto& x, auto&) { return sqrt(x); }},
    {"abs", {3}, {}, [](auto& x, auto&) { return abs(x); }},
    {"pow", {4, 3}, {3}, [](auto& x, auto& y) { return pow(x, y); }},
    {"sin", {3}, {}, [](auto& x, auto&) { return sin(x); }},
    {"cos", {3}, {}, [](auto& x, auto&) { return cos(x); }},
    {"cast", {3}, {}, [](auto& x, auto&) { return cast(x, dtype::float64); }},
    {"matmul", {4, 3}, {3, 5}, [](auto& x, auto& y) { return matmul(x, y); }},
    {"matmul_tn", {3, 4}, {3, 5}, [](auto& x, auto& y) { return matmul_tn(x, y); }},
    {"matmul_nt", {4, 3}, {5, 3}, [](auto& x, auto& y) { return matmul_nt(x, y); }},
    {"batches", {2, 4, 3}, {2, 3, 5}, [](auto& x, auto& y) { return matmul(x, y); }},
    {"rows", {2, 4, 3}, {5, 3}, [](auto& x, auto& y) { return matmul_nt(x, y); }},
    {"vector", {2, 4, 3}, {3}, [](auto& x, auto& y) { return matmul(x, y); }},
    {"einsum", {2, 4, 3}, {4, 5}, [](auto& x, auto& y) { return einsum("bij,ik->bjk"_es, x, y); }},
    {"sum", {4, 3}, {}, [](auto& x, auto&) { return sum(x); }},
    {"sum along", {4, 3, 2}, {}, [](auto& x, auto&) { return sum(x, axis<1>); }},
    {"mean", {4, 3}, {}, [](auto& x, auto&) { return mean(x); }},
    {"mean along", {4, 3, 2}, {}, [](auto& x, auto&) { return mean(x, axis<0, 2>, keepdims); }},
    {"max", {4, 3}, {}, [](auto& x, auto&) { return max(x); }},
    {"max along", {4, 3, 2}, {}, [](auto& x, auto&) { return max(x, axis<0, 2>); }},
    {"min", {4, 3}, {}, [](auto& x, auto&) { return min(x); }},
    {"min along", {4, 3, 2}, {}, [](auto& x, auto&) { return min(x, axis<0, 2>); }},
    {"slice",
     {4, 3},
     {},
     [](auto& x, auto&) {
       return slice(x, {1, 0}, {2, dyn});
     }},
    {"pad",
     {4, 3},
     {},
     [](auto& x, auto&) {
       return pad(x, {1, 0}, {0, 2});
     }},
    {"stack", {4, 3}, {4, 3}, [](auto& x, auto& y) { return stack(axis<1>, x, y, x); }},
    {"sum_to", {4, 3}, {3}, [](auto& x, auto& y) { return sum_to(x, y); }},
    {"broadcast_to", {3}, {4, 3}, [](auto& x, auto& y) { return broadcast_to(x, y); }},
    {"reshape", {4, 3}, {3, 4}, [](auto& x, auto& y) { return reshape(x, y); }},
    {"expand_dims", {4, 3}, {}, [](auto& x, auto&) { return expand_dims(x, axis<1>); }},
    {"transpose",
     {4, 3, 2},
     {},
     [](auto& x, auto&) {
       return transpose(x, axes{1, 2, 0});
     }},
    {"concat", {4, 3}, {4, 2}, [](auto& x, auto& y) { return concat(axis<1>, x, y, x); }},
    {"gather",
     {4, 3},
     {},
     [](auto& x, auto&) {
       return gather(x, constant({{0, 1}, {3, 0}}));
     }},
    {"softmax", {4, 3}, {}, [](auto& x, auto&) { return softmax(x); }},
    {"conv2d",
     {2, 5, 4, 3},
     {3, 2, 3, 4},
     [](auto& x, auto& y) { return conv2d(x, y, stride<2>, padding::same); }},
    {"max_pool", {2, 5, 4, 3}, {}, [](auto& x, auto&) { return max_pool(x, window<2>); }},
    {"avg_pool", {2, 5, 4, 3}, {}, [](auto& x, auto&) { return avg_pool(x, window<2>); }},
    {"dense", {4, 3}, {4, 3}, [](auto& x, auto& y) { return softmax_cross_entropy(x, y); }},
    {"sparse",
     {4, 3},
     {},
     [](auto& x, auto&) {
       return softmax_cross_entropy(x, constant({0, 1, 2, 0}));
     }},
    {"identity", {3}, {}, [](auto& x, auto&) { return identity(x); }},
};

}  // namespace

TEST_CASE_FIXTURE(testing::own_graph, "a gradient has the dtype and shape of its input") {
  for (const auto& f : functions)
    for (bool dynamic : {false, true}) {
      CAPTURE(f.name);
      CAPTURE(dynamic);
      auto shape = [&](const dims& d) { return dynamic ? dims::filled(d.rank(), dyn) : d; };
      any_tensor x = any(dtype::float32, shape(f.x)), y = any(dtype::float32, shape(f.y));
      any_tensor z = f.f(x, y);
      auto [dx, dy] = gradients(z, x, y);
      CHECK(dx.type() == dtype::float32);
      CHECK(may_equal(dx.shape(), x.shape()));
      CHECK(may_equal(dy.shape(), y.shape()));
      if (!f.twice) continue;
      auto [ddx, ddy] = gradients(sum(square(dx)), x, y);
      CHECK(may_equal(ddx.shape(), x.shape()));
      CHECK(may_equal(ddy.shape(), y.shape()));
    }
}

TEST_CASE_FIXTURE(testing::own_graph, "a gradient by a typed tensor has the type of that tensor") {
  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  variable<float, 784, 10> w("w", zeros());
  variable<float, 10> b("b", zeros());
  auto loss = mean(softmax_cross_entropy(matmul(x, w) + b, label));
  auto [dw, db] = gradients(loss, w, b);
  static_assert(std::is_same_v<decltype(dw), tensor<float, 784, 10>>);
  static_assert(std::is_same_v<decltype(db), tensor<float, 10>>);
  CHECK(maker(db).def->name == "sum");
}

TEST_CASE_FIXTURE(testing::own_graph, "no gradient flows through stop_gradient, or integers") {
  placeholder<float, 3> x("x");
  auto zero = [&](const any_tensor& z) {
    auto [dx] = gradients(z, any_tensor(x));
    return maker(dx).def->name == "broadcast_to" &&
           maker(dx).inputs()[0].node->def->name == "constant";
  };
  CHECK(zero(stop_gradient(x * 2)));
  CHECK(zero(cast<float>(argmax(x, axis<0>))));
  CHECK(zero(where(x > 0, 1.f, 0.f)));
}

TEST_CASE_FIXTURE(testing::own_graph, "a power of 0 has a finite gradient") {
  placeholder<float, 3> x("x"), y("y");
  session s;
  const any_tensor of[] = {x}, slope = plan::gradients(sum(pow(x, y)), of)[0];
  CHECK(s.run(slope, x = {0, 0, 2}, y = {0, 1, 0}) == ndarray<float, 3>{0, 1, 0}.array());
  // 1 / x is infinite.
  CHECK(s.run(slope, x = {1e-40f, -1e-45f, 2}, y = {0, 0, 1}) ==
        ndarray<float, 3>{0, 0, 1}.array());
}
