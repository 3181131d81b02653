// SPDX-License-Identifier: Apache-2.0
#include <deft/op/plan/unfuse.hpp>
#include <deft/session/session.hpp>

#include "plan/planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::maker;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "a fused node opens into a primitive for each instruction") {
  placeholder<float, 3> x("x"), y("y");
  tensor<float, 3> f = relu(x * 2 + y);
  REQUIRE(plan::is_fused(maker(f)));
  std::vector<output> inside = plan::unfuse(f.handle().node);
  REQUIRE(inside.size() == 3);
  CHECK(inside[0].node->def->name == "mul");
  CHECK(inside[1].node->def->name == "add");
  CHECK(inside[2].node->def->name == "relu");
  CHECK(inside[2].type() == f.handle().type());
  const node& two = *inside[0].node->inputs()[1].node;
  CHECK(*decode<op::constant>(two.attributes).value.data<float>() == 2.f);
}

TEST_CASE_FIXTURE(own_graph, "an opened node gives the nodes that were written by hand") {
  placeholder<float, 3> x("x"), y("y");
  auto first = no_op();
  auto write = [&](auto f) {
    auto there = on(device("/cpu:1"));
    auto after = control_dependencies(first);
    return f();
  };
  tensor<float, 3> sum = write([&] { return x + y; });
  tensor<float, 3> fused = write([&] { return exp(x + y) - y; });
  auto scope = on(device("/gpu:0"));
  std::vector<output> inside = plan::unfuse(fused.handle().node);
  CHECK(inside[0] == sum.handle());
  for (const auto& o : inside) {
    CHECK(to_string(*o.node->device()) == "/cpu:1");
    REQUIRE(o.node->controls().size() == 1);
    CHECK(o.node->controls()[0] == first.handle());
  }
}

TEST_CASE_FIXTURE(own_graph, "a fused node that no fetch or feed looks into stays") {
  placeholder<float, 3> x("x"), y("y");
  tensor<float, 3> f = relu(x * 2 + y), sum = x + y, other = exp(x + y) * sum;
  auto needed = [](std::vector<output> fetches, std::vector<output> feeds) {
    return plan::unfuse_where_needed(fetches, feeds);
  };
  CHECK(needed({f.handle()}, {x.handle(), y.handle()}).empty());
  CHECK(needed({f.handle()}, {f.handle()}).size() <= 1);
  // A value that another node computes, too, does not open a node with a compiled kernel.
  CHECK(needed({other.handle()}, {}).empty());
  substitution s = needed({other.handle(), sum.handle()}, {});
  REQUIRE(s.size() == 1);
  CHECK(s.begin()->first == other.handle().node.get());
  CHECK(s.begin()->second.node->def->name == "mul");
  CHECK(needed({other.handle()}, {sum.handle()}).size() == 1);
}

TEST_CASE_FIXTURE(own_graph, "nodes inside an expression can be fed and fetched") {
  placeholder<float, 2> x("x");
  auto square_of = x * x;
  tensor<float, 2> y = exp(square_of - square_of) + square_of;
  session s;
  ndarray<float, 2> v{1, 2}, nine{9, 16};
  CHECK(s.run(y, x = v) == ndarray<float, 2>{2, 5});
  CHECK(s.run(y, feed(square_of, nine)) == ndarray<float, 2>{10, 17});
  auto [inner, outer] = s.run(square_of, y, x = v);
  CHECK(inner == ndarray<float, 2>{1, 4});
  CHECK(outer == ndarray<float, 2>{2, 5});
}

TEST_CASE_FIXTURE(own_graph, "an expression with literals is fed wherever it is written") {
  placeholder<float, 2> x("x");
  auto scaled = x * 2 + 1;
  tensor<float, 2> y = exp(scaled - scaled) + scaled, named = scaled;
  any_tensor total = sum(named) + sum(y);
  session s;
  ndarray<float, 2> v{10, 20};
  CHECK(s.run(y, feed(scaled, v)) == ndarray<float, 2>{11, 21});
  CHECK(s.run(named, feed(scaled, v)) == v);
  CHECK(*s.run(total, feed(named, v)).data<float>() == 62.f);
  CHECK(testing::error_of([&] {
          s.run(sum(x), feed(scaled, v), x = v);
        }).starts_with("invalid_argument: no fetch needs the tensor that is fed"));
}
