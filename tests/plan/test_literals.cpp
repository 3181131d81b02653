// SPDX-License-Identifier: Apache-2.0
#include <deft/plan/literals.hpp>

#include "planning.hpp"

using namespace deft;
using testing::flat;
using testing::names;
using testing::ops_of;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "graphs that differ in literals alone have one hash") {
  placeholder<float, dyn> x("x"), y("y");
  auto hash = [&](const auto& e) {
    return plan::hash_without_literals(flat({tensor<float, dyn>(e)}));
  };
  auto scaled = [&](float k) { return hash(x * k + 1.f); };
  CHECK(scaled(2.f) == scaled(3.f));
  const auto one = hash(x * 2.f);
  CHECK(one != hash(y * 2.f));
  CHECK(one != hash(x + 2.f));
  CHECK(one != hash(x * 2.f * 2.f));
  auto elsewhere = on(device("/cpu:1"));
  CHECK(one != hash(x * 2.f));
}

TEST_CASE_FIXTURE(own_graph, "literals become feeds where they are asked for, and only there") {
  placeholder<float, dyn> x("x");
  tensor<float> total = sum(x * 2.f + 0.5f);
  tensor<float, dyn> y = total * 3.f - x;
  flat_graph f = flat({y, total}, {x});
  REQUIRE(plan::literals_of(f.graph) ==
          std::vector<integers>{{to_immediate(2.f), to_immediate(0.5f)}, {to_immediate(3.f)}});
  const auto values = plan::literal_values(f.graph, {true, false});
  REQUIRE(values.size() == 2);
  CHECK(*values[0].data<float>() == 2.f);
  CHECK(*values[1].data<float>() == 0.5f);

  plan::feed_literals(f, {true, false}, 1);
  check(f.graph);
  check(f.graph, f.fetches);
  CHECK(ops_of(f.graph) == names{"feed", "feed", "feed", "fused", "sum", "fused"});
  for (std::uint32_t i : {0u, 1u}) {
    CHECK(std::get<std::int64_t>(f.graph.nodes[i].attributes[0]) == i + 1);
    CHECK(f.graph.nodes[i].outputs[0] == tensor_type{dims{}, dtype::float32});
  }
  CHECK(f.feeds == std::vector<std::uint32_t>{2});
  CHECK(f.fetches[0].node == 5);
  CHECK(f.fetches[1].node == 4);
  CHECK(f.graph.nodes[3].inputs == std::vector<edge_def>{{2, 0}, {0, 0}, {1, 0}});
  CHECK(f.graph.nodes[5].inputs == std::vector<edge_def>{{4, 0}, {2, 0}});
  CHECK(f.origin.size() == f.graph.nodes.size());
}

TEST_CASE_FIXTURE(own_graph, "a fused node takes all its literals as inputs, or none") {
  placeholder<float, dyn> x("x");
  flat_graph f = flat({tensor<float, dyn>(x * 2.f + 1.f)});
  auto& n = f.graph.nodes.back();
  n.inputs.push_back({0, 0});
  CHECK_THROWS_WITH_AS(check(f.graph), doctest::Contains("takes 1 inputs, not 2"), error);
  n.inputs.push_back({0, 0});
  CHECK_THROWS_WITH_AS(check(f.graph), doctest::Contains("literal 0 is"), error);
}
