// SPDX-License-Identifier: Apache-2.0
#include <deft/plan/plan_shape.hpp>

#include "graph/edit.hpp"
#include "planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::flat;
using testing::names;
using testing::ops_of;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "graphs that differ only in literals have one plan shape") {
  placeholder<float, dyn> x("x"), y("y");
  auto shape_of = [&](const auto& e) { return plan::plan_shape(flat({tensor<float, dyn>(e)})); };
  auto scaled = [&](float k) { return shape_of(x * k + 1.f); };
  CHECK(scaled(2.f) == scaled(3.f));
  CHECK(scaled(2.f).hash() == scaled(3.f).hash());
  const auto one = shape_of(x * 2.f);
  auto other = [&](const plan::plan_shape& o) { return o != one && o.hash() != one.hash(); };
  CHECK(other(shape_of(y * 2.f)));
  CHECK(other(shape_of(x + 2.f)));
  CHECK(other(shape_of(x * 2.f * 2.f)));
  auto elsewhere = on(device("/cpu:1"));
  CHECK(other(shape_of(x * 2.f)));
}

TEST_CASE_FIXTURE(own_graph, "plan shapes tell devices apart that exist one after the other") {
  placeholder<float, dyn> x("x");
  flat_graph f = flat({tensor<float, dyn>(x * 2.f)});
  auto on_task = [&](int i) {
    for (auto& n : f.graph.nodes) n.requested = intern(parse_device(str("/job:outline/task:", i)));
    plan::plan_shape o(f);
    for (auto& n : f.graph.nodes) n.requested = nullptr;  // the name is forgotten
    return o;
  };
  const auto first = on_task(0);
  for (int i = 1; i < 20; ++i) CHECK_FALSE(on_task(i) == first);
  CHECK(on_task(0) == first);
}

TEST_CASE_FIXTURE(own_graph, "different graphs have different plan shapes") {
  placeholder<float, dyn, 2> x("x");
  auto shape_of = [&](const flat_graph& f) { return plan::plan_shape(f); };
  tensor<float, dyn, 2> e = x * 2.f;
  tensor<float, dyn> rows = sum(e, axis<1>);
  const flat_graph first = flat({rows}, {x});
  const auto one = shape_of(first);
  auto changed = [&](auto change) {
    flat_graph f = first;
    change(f);
    return !(shape_of(f) == one);
  };
  CHECK_FALSE(changed([](flat_graph&) {}));
  CHECK_FALSE(changed([](flat_graph& f) { f.graph.nodes.back().name = "renamed"; }));
  CHECK(
      changed([](flat_graph& f) { f.graph.nodes[0].name = "renamed"; }));  // feeds keep their names
  CHECK(changed([](flat_graph& f) { f.graph.nodes.back().location.line += 1; }));
  CHECK(changed([](flat_graph& f) { f.graph.nodes.back().location.file = "other.cpp"; }));
  CHECK(changed([](flat_graph& f) { f.graph.nodes.back().controls = {0}; }));
  CHECK(changed([](flat_graph& f) { f.graph.nodes.back().inputs = {{0, 0}}; }));
  CHECK(changed([](flat_graph& f) {
    testing::edit(f.graph.nodes.back().attributes, [](auto& a) { a[0] = integers{0}; });
  }));
  CHECK(changed([](flat_graph& f) {
    testing::edit(f.graph.nodes.back().outputs, [](auto& o) { o[0].shape = {3}; });
  }));
  CHECK(changed([](flat_graph& f) { f.graph.nodes.back().op = &record_of<op::mean>; }));
  CHECK(changed([](flat_graph& f) { f.fetches.push_back(f.fetches[0]); }));
  CHECK(changed([](flat_graph& f) { f.fetches[0].port = run_only; }));
  CHECK(changed([](flat_graph& f) { f.feeds.clear(); }));
  // The number of literals counts, not their values.
  CHECK(changed([](flat_graph& f) {
    testing::edit(f.graph.nodes[1].attributes, [](auto& a) { a[1] = integers{1, 2}; });
  }));
  CHECK_FALSE(changed([](flat_graph& f) {
    testing::edit(f.graph.nodes[1].attributes, [](auto& a) { a[1] = integers{7}; });
  }));
}

TEST_CASE_FIXTURE(own_graph, "plan shapes compare the elements of constants") {
  placeholder<float, dyn> x("x");
  auto shape_of = [&](const any_array& v) {
    return plan::plan_shape(flat({tensor<float, dyn>(tensor<float, dyn>(constant(v)) * x * 2.f)}));
  };
  auto array = [](float last) {
    any_array a(dtype::float32, {3});
    for (int i = 0; i < 3; ++i) a.mutable_data<float>()[i] = i < 2 ? 1.f : last;
    return a;
  };
  CHECK(shape_of(array(5.f)) == shape_of(array(5.f)));
  CHECK_FALSE(shape_of(array(5.f)) == shape_of(array(6.f)));
  // A graph with a control dependency has the same plan shape when it is written again.
  variable<float> v("v", 0.f);
  auto after_update = [&] {
    auto after = control_dependencies(v.assign_add(1.f));
    return plan::plan_shape(flat({any_tensor(constant({1.f, 2.f}))}));
  };
  const auto waiting = after_update();
  CHECK(waiting == after_update());
  CHECK(waiting.hash() == after_update().hash());
  // The same bytes of another dtype are different.
  any_array bits(dtype::int32, {3});
  std::memcpy(bits.mutable_raw(), array(5.f).raw(), bits.bytes());
  const auto as = [&](const any_array& value) {
    return plan::plan_shape(flat({any_tensor(constant(value))}));
  };
  CHECK_FALSE(as(bits) == as(array(5.f)));
}

TEST_CASE_FIXTURE(own_graph, "literals become feeds where requested, and only there") {
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
  validate(f.graph);
  validate(f.graph, f.fetches);
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
}

TEST_CASE_FIXTURE(own_graph, "a fused node takes all its literals as inputs, or none") {
  placeholder<float, dyn> x("x");
  flat_graph f = flat({tensor<float, dyn>(x * 2.f + 1.f)});
  auto& n = f.graph.nodes.back();
  n.inputs.push_back({0, 0});
  CHECK_THROWS_WITH_AS(validate(f.graph), doctest::Contains("takes 1 inputs, not 2"), error);
  n.inputs.push_back({0, 0});
  CHECK_THROWS_WITH_AS(validate(f.graph), doctest::Contains("literal 0 is"), error);
}
