// SPDX-License-Identifier: Apache-2.0
#include <deft/op/ensure_shape.hpp>
#include <deft/op/gradients.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;
using testing::own_graph;
using testing::type_of;

namespace {
using vec = ndarray<float, dyn>;
/// Of nodes that `f` adds.
std::string line_after(unsigned line) { return str(" at test_ensure_shape.cpp:", line + 1); }
}  // namespace

TEST_CASE_FIXTURE(own_graph, "the run checks the extents that a tensor says of an any_tensor") {
  any_tensor p = make_placeholder("p", dtype::float32, {dyn});
  const unsigned before = __LINE__;
  tensor<float, 3> t(p);
  session s;
  CHECK(s.run(t * 2, feed(p, vec{1, 2, 3})) == ndarray<float, 3>{2, 4, 6});
  CHECK(s.run(t, feed(p, vec{1, 2, 3})) == ndarray<float, 3>{1, 2, 3});
  const std::string says =
      "invalid_argument: [tensor] the value has other extents than its tensor: expected float(3), "
      "and got float(2), node \"p/ensure_shape\"" +
      line_after(before);
  auto refused = [&](auto&&... fetches) {
    const std::string e = testing::error_of([&] { s.run(fetches..., feed(p, vec{1, 2})); });
    INFO(e);
    CHECK(e.starts_with(says));
  };
  refused(t);
  refused(t * 2);
  refused(sum(t));
  refused(p, t * 2 + 1);
  CHECK(s.run(p, feed(p, vec{1, 2})) == vec{1, 2});  // nobody said anything of it
  CHECK(s.run(t * 2, feed(p, vec{1, 2, 3})) == ndarray<float, 3>{2, 4, 6});
}

TEST_CASE_FIXTURE(own_graph, "a value made by operations is checked as one that is fed") {
  any_tensor p = make_placeholder("p", dtype::float32, {dyn, dyn});
  session s;
  const auto two = ndarray<float, dyn, dyn>{{1, 2}, {3, 4}};
  auto refused = [&](const any_tensor& t) {
    const std::string e = testing::error_of([&] { s.run(t, feed(p, two)); });
    INFO(e);
    CHECK(e.find("[tensor] the value has other extents than its tensor: expected float(") !=
          std::string::npos);
  };
  any_tensor doubled = p * 2 + 1;
  refused(tensor<float, dyn, 3>(doubled) * 3);
  refused(tensor<float, 4>(sum(doubled, {1})));
  refused(tensor<float, 3, dyn>(matmul(p, p)) + 1);
  refused(tensor<float, dyn, 3>(transpose(p, {1, 0})));
  tensor<float, 2, 2> w = constant({{1.f, 0.f}, {0.f, 1.f}});
  refused(tensor<float, 5, 2>(gradients(sum(p * p * 2), {p})[0]));
  CHECK(s.run(tensor<float, dyn, 2>(doubled) * 3, feed(p, two)) ==
        ndarray<float, dyn, 2>{{9, 15}, {21, 27}});
}

TEST_CASE_FIXTURE(own_graph, "extents that are known while the graph is written need no check") {
  any_tensor p = any(dtype::float32, {dyn, 3});
  CHECK(maker(tensor<float, dyn, 3>(p)).def->name == "placeholder");
  CHECK(maker(tensor<float, dyn, dyn>(p)).def->name == "placeholder");
  CHECK(maker(tensor<float, 2, 3>(p)).def->name == "ensure_shape");
  placeholder<float, dyn, 4> x("x");
  variable<float, 4, 2> w("w", zeros());
  const auto [dw, dx] = gradients(sum(square(matmul(x, w))), w, x);
  CHECK(maker(dw).def->name != "ensure_shape");
  CHECK(maker(dx).def->name != "ensure_shape");
}

TEST_CASE_FIXTURE(own_graph, "a checked tensor stays the tensor that it was made of") {
  any_tensor p = make_placeholder("p", dtype::float32, {dyn});
  tensor<float, 3> t(p);
  CHECK(same(t, p));
  CHECK(same(any_tensor(t), p));
  CHECK(same(t, tensor<float, 3>(p)));
  CHECK(name_of(t) == "p");
  name(t, "alias");
  CHECK(g.find("alias") == p.handle().node);

  session s;
  // Fed by either handle, also where the other is used.
  CHECK(s.run(sum(t) + sum(p), t = {1, 2, 3}).item<float>() == 12);
  CHECK(s.run(sum(t) + sum(p), feed(p, vec{1, 2, 3})).item<float>() == 12);
  CHECK(s.run(t, t = {1, 2, 3}) == ndarray<float, 3>{1, 2, 3});
  auto step = s.prepare(sum(t) + sum(p), feeds(t));
  CHECK(step({1, 2, 3}).item<float>() == 12);
  // The gradient is that of the tensor, whichever handle the loss was made of.
  any_tensor loss = sum(p * p) + sum(t);
  const auto both = gradients(loss, {any_tensor(t), p});
  CHECK(s.run(both[0], t = {1, 2, 3}) == vec{3, 5, 7});
  CHECK(s.run(both[1], t = {1, 2, 3}) == vec{3, 5, 7});
}

TEST_CASE_FIXTURE(own_graph, "checks do not keep operations from being fused") {
  any_tensor p = make_placeholder("p", dtype::float32, {dyn});
  tensor<float, 5000> t(p * 2);
  tensor<float, 5000> u(any_tensor(exp(t) + p));
  session s;
  const std::string plan = s.explain(u * 3, feed(p, vec(5000)));
  INFO(plan);
  CHECK(plan.find("nodes as written, 3 after fusion") != std::string::npos);  // feed, check, fused
  vec ones(5000);
  ones.data()[0] = 1;
  const auto y = s.run(u * 3, feed(p, ones));
  CHECK(y(0) == doctest::Approx(3 * (std::exp(2.f) + 1)));
  CHECK(y(1) == doctest::Approx(3));
  const std::string e = testing::error_of([&] { s.run(u * 3, feed(p, vec(4999))); });
  INFO(e);
  CHECK(e.find("expected float(5000), and got float(4999)") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "checks are where their value is, and wait for nothing else") {
  any_tensor p = any(dtype::float32, {dyn});
  auto there = on(device("/cpu:1"));
  control_scope after({constant(1.f).handle().node});
  tensor<float, 3> t(p);
  CHECK(maker(t).device() == maker(p).device());
  CHECK(maker(t).controls().empty());
}

TEST_CASE_FIXTURE(own_graph, "ensure_shape says more of a tensor, typed or not") {
  placeholder<float, dyn, dyn> x("x");
  auto y = ensure_shape(x, shape<dyn, 3>);
  static_assert(std::is_same_v<decltype(y), tensor<float, dyn, 3>>);
  CHECK(same(any_tensor(y), x));
  CHECK(type_of(ensure_shape(any(dtype::float32, {dyn, dyn}), dims{2, dyn})) == "float(2,?)");
  CHECK(testing::error_of([&] {
          ensure_shape(any(dtype::float32, {dyn, 3}), dims{2, 4});
        }).starts_with("invalid_argument: [tensor] float(?,3) is not a tensor of float(2,4)"));
  session s;
  CHECK(testing::error_of([&] {
          s.run(y + 1, x = ndarray<float, 1, 2>{1, 2});
        }).find("expected float(?,3), and got float(1,2)") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "nodes found by name are tensors, and fetches") {
  placeholder<float, dyn, 2> x("x");
  const auto logits = name(x * 2, "logits");
  tensor<float, 1, 2> t(g.find("logits"));
  session s;
  CHECK(s.run(t, x = {{1, 2}}) == ndarray<float, 1, 2>{2, 4});
  any_array v = s.run(g.find("logits"), x = {{1, 2}});
  CHECK(ndarray<float, 1, 2>(v) == ndarray<float, 1, 2>{2, 4});
  CHECK(testing::error_of([&] {
          (void)tensor<float>(g.find("nobody"));
        }).starts_with("not_found: [tensor] the graph has no node of that name"));
  CHECK(testing::error_of([&] { (void)any_tensor(no_op().handle()); })
            .starts_with("invalid_argument: [tensor] expects a node with a value, and got an "
                         "operation, no_op"));
}
