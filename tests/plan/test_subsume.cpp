// SPDX-License-Identifier: Apache-2.0
#include <deft/op/gradients.hpp>
#include <deft/plan/subsume.hpp>
#include <deft/session/session.hpp>

#include "planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::find_op_in;
using testing::first;
using testing::flat;
using testing::ops_of;
using testing::own_graph;

namespace {

flat_graph subsumed(flat_graph f) {
  f = testing::on_cpu(std::move(f));
  plan::subsume(f.graph, f.fetches);
  validate(f.graph, f.fetches);
  return f;
}
std::ptrdiff_t count(const flat_graph& f, std::string_view op) {
  return std::ranges::count(ops_of(f.graph), op);
}

struct classifier : own_graph {
  placeholder<float, 20, 5> logits{"logits"};
  placeholder<std::int32_t, 20> labels{"labels"};
  any_tensor rows = softmax_cross_entropy(any_tensor(logits), any_tensor(labels));

  any_tensor gradient_of(const any_tensor& y) {
    auto [g] = gradients(y, any_tensor(logits));
    return g;
  }
};

}  // namespace

TEST_CASE_FIXTURE(classifier, "a loss and its gradient are one node") {
  const any_tensor loss = mean(rows), gradient = gradient_of(loss);
  flat_graph f = subsumed(flat({loss, gradient, rows}));
  const auto both = find_op_in(f.graph, "softmax_cross_entropy_grad");
  CHECK(f.graph.nodes[both].name == name_of(rows));
  CHECK(f.fetches[1] == edge_def{both, 0});
  CHECK(f.fetches[2] == edge_def{both, 1});
  CHECK(first(f.graph, "mean").inputs[0] == edge_def{both, 1});
  CHECK(count(f, "softmax_cross_entropy") == 0);
  // The factor of all rows is not broadcast first.
  CHECK(f.graph.nodes[both].inputs.size() == 3);
  CHECK(count(f, "broadcast_to") == 0);
}

TEST_CASE_FIXTURE(classifier, "a loss and a gradient that others wait for are one node") {
  const any_tensor loss = mean(rows), gradient = gradient_of(loss);
  flat_graph f = subsumed(flat(group(loss, gradient)));
  const auto node = find_op_in(f.graph, "softmax_cross_entropy_grad");
  const auto& waiting = first(f.graph, "group").controls;
  CHECK(std::ranges::count(waiting, node) == 1);
}

TEST_CASE_FIXTURE(classifier,
                  "a loss and its gradient stay separate where one node cannot be both") {
  auto two = [&](const flat_graph& f) {
    CHECK(count(f, "softmax_cross_entropy") == 1);
    CHECK(count(f, "softmax_cross_entropy_grad") == 1);
  };
  const any_tensor loss = mean(rows), gradient = gradient_of(loss);
  // They are on different devices.
  flat_graph apart = testing::on_cpu(flat({loss, gradient}));
  apart.graph.nodes[find_op_in(apart.graph, "softmax_cross_entropy_grad")].device =
      testing::device_at("/job:local/task:0/device:cpu:1");
  plan::subsume(apart.graph, apart.fetches);
  two(apart);
  // The gradient needs the loss.
  const any_tensor squared = sum(square(rows));
  two(subsumed(flat({squared, gradient_of(squared)})));
  // Other nodes wait for the loss.
  any_tensor waits = [&] {
    control_scope after({rows.handle().node});
    return exp(loss);
  }();
  two(subsumed(flat({gradient, waits})));
  // Of two gradients only the first yields the loss.
  flat_graph f = subsumed(flat({loss, gradient, gradient_of(sum(rows))}));
  CHECK(count(f, "softmax_cross_entropy") == 0);
  CHECK(count(f, "softmax_cross_entropy_grad") == 2);
}

TEST_CASE_FIXTURE(classifier, "a loss alone has no gradient, and a gradient alone no loss") {
  flat_graph f = subsumed(flat({rows}));
  CHECK(count(f, "softmax_cross_entropy") == 1);
  CHECK(count(f, "softmax_cross_entropy_grad") == 0);
  f = subsumed(flat({gradient_of(mean(rows))}));
  CHECK(count(f, "softmax_cross_entropy") == 0);
  CHECK(count(f, "softmax_cross_entropy_grad") == 1);
}

TEST_CASE_FIXTURE(own_graph, "a loss and its gradient have the same bits as one node and as two") {
  auto run = [&](auto labels, const auto& fed) {
    placeholder<float, dyn, 5> logits("logits");
    any_tensor rows = softmax_cross_entropy(any_tensor(logits), any_tensor(labels));
    placeholder<float, dyn> weights("weights");
    any_tensor loss = mean(rows), squares = sum(rows * rows), weighted = sum(rows * weights);
    auto [gradient] = gradients(loss, any_tensor(logits));
    auto [other] = gradients(squares, any_tensor(logits));
    auto [third] = gradients(weighted, any_tensor(logits));
    auto [second] = gradients(sum(square(gradient)), any_tensor(logits));
    session with, without({.fuse = false});
    ndarray<float, dyn, 5> x(3);
    int i = 0;
    for (auto& e : x) e = static_cast<float>(i++ * 7 % 11) / 3 - 1;
    const ndarray<float, dyn> w{0.3f, -2, 1e-3f};
    auto all = [&](session& s) {
      return s.run(loss, gradient, other, third, second, rows, logits = x, labels = fed,
                   weights = w);
    };
    CHECK(all(with) == all(without));
    // A loss that is fed is not computed, and nothing is taken from the gradient's node.
    CHECK(with.run(loss, gradient, feed(rows, ndarray<float, dyn>{1, 2, 6}), logits = x,
                   labels = fed) == without.run(loss, gradient,
                                                feed(rows, ndarray<float, dyn>{1, 2, 6}),
                                                logits = x, labels = fed));
    // The loss itself need not be fetched.
    CHECK(with.run(gradient, logits = x, labels = fed) ==
          without.run(gradient, logits = x, labels = fed));
  };
  run(placeholder<std::int32_t, dyn>("classes"), ndarray<std::int32_t, dyn>{0, 4, 2});
  ndarray<float, dyn, 5> dense(3);
  for (auto& e : dense) e = .2f;
  run(placeholder<float, dyn, 5>("probabilities"), dense);
}
