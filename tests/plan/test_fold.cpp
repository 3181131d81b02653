// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/constant_folding.hpp>
#include <deft/plan/fold.hpp>

#include "planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::flat;
using testing::named;
using testing::names;
using testing::ops_of;
using testing::own_graph;

namespace {
flat_graph folded(flat_graph f) {
  plan::fold(f.graph, f.fetches, evaluate_on_host);
  validate(f.graph);
  return f;
}
const any_array& value_of(const flat_graph& f, std::size_t fetch = 0) {
  const node_def& n = f.graph.nodes[f.fetches[fetch].node];
  REQUIRE(n.op == &record_of<op::constant>);
  return std::get<any_array>(n.attributes[0]);
}
}  // namespace

TEST_CASE_FIXTURE(own_graph, "nodes that depend only on constants become constants") {
  any_tensor a(constant({1.f, 2.f, 3.f})), y = sum(exp(a - a) * 2 + a);
  flat_graph f = folded(flat({y}));
  REQUIRE(f.graph.nodes.size() == 1);
  CHECK(*value_of(f).data<float>() == 12.f);
  CHECK(f.graph.nodes[0].name == "sum");
  CHECK(f.graph.nodes[0].outputs[0] == y.handle().type());
  CHECK(written_op(f.graph.nodes[0]) == "sum");
  tensor<float, 3> expression = constant({1.f, 2.f, 3.f}) * 2 + 1;
  CHECK(written_op(folded(flat({expression})).graph.nodes[0]) == "add");
}

TEST_CASE_FIXTURE(own_graph, "constants are folded, and nodes that depend on a feed stay") {
  placeholder<float, dyn> x("x");
  any_tensor two = any_tensor(constant(1.f)) + 1, y = any_tensor(x) * two;
  flat_graph f = folded(flat({y}, {x}));
  CHECK(ops_of(f.graph) == names{"feed", "constant", "mul"});
}

TEST_CASE_FIXTURE(own_graph, "constants are folded through reshape, identity and stop_gradient") {
  any_tensor a(constant({1.f, 2.f, 3.f, 4.f}));
  any_tensor m = stop_gradient(identity(reshape(a, dims{2, 2})));
  flat_graph f = folded(flat({matmul(m, m), m}));
  CHECK(to_string(value_of(f)) == to_string(ndarray<float, 2, 2>{7, 10, 15, 22}));
  CHECK(value_of(f, 1).shape() == dims{2, 2});
}

TEST_CASE_FIXTURE(own_graph, "state, random numbers, feeds and effects are not folded") {
  variable<float, 2> v("v", zeros());
  any_tensor r(random_uniform(shape<2>)), up = v.assign(constant({1.f, 2.f})).value();
  flat_graph f = folded(flat({any_tensor(v) + 1, r + 1, up}));
  for (const char* kept : {"variable", "random_uniform", "assign", "add"})
    CHECK(testing::first(f.graph, kept).op->name == kept);
  any_tensor c(constant({1.f, 2.f}));
  f = folded(flat({c + 1}, {c}));
  CHECK(ops_of(f.graph) == names{"feed", "constant", "add"});
}

TEST_CASE_FIXTURE(own_graph, "who uses a constant waits for what it was written after") {
  variable<float> v("v", 0.f);
  placeholder<float, 2> x("x");
  auto up = v.assign_add(1.f).value();
  any_tensor late = [&] {
    auto after = control_dependencies(up);
    return any_tensor(constant({1.f, 2.f}));
  }();
  const auto waits_for_update = [&](const graph_def& g, const node_def& n) {
    return n.controls.size() == 1 && g.nodes[n.controls[0]].name == name_of(up);
  };
  const flat_graph folded_too = folded(flat({late + 1}));
  const node_def& fetched = folded_too.graph.nodes[folded_too.fetches[0].node];
  CHECK(fetched.op->name == "constant");
  CHECK(waits_for_update(folded_too.graph, fetched));

  const flat_graph f = folded(flat({(late + 1) * any_tensor(x)}, {x}));
  const node_def& user = f.graph.nodes[f.fetches[0].node];
  CHECK(user.op->name == "mul");
  CHECK(waits_for_update(f.graph, user));
  for (const auto& n : f.graph.nodes)
    if (n.op->name == "constant") CHECK(n.controls.empty());

  const flat_graph by_control = folded(flat([&] {
    auto after = control_dependencies(late);
    return no_op();
  }()));
  CHECK(ops_of(by_control.graph).back() == "no_op");
  CHECK(std::ranges::any_of(by_control.graph.nodes.back().controls, [&](std::uint32_t c) {
    return by_control.graph.nodes[c].name == name_of(up);
  }));
}

TEST_CASE_FIXTURE(own_graph, "nodes with large results are not folded") {
  any_tensor one(constant(1.f));
  any_tensor small = broadcast_to(one, dims{100, 100}), large = broadcast_to(one, dims{1000, 1000});
  CHECK(ops_of(folded(flat({small})).graph) == names{"constant"});
  CHECK(ops_of(folded(flat({large})).graph) == names{"constant", "broadcast_to"});
}

TEST_CASE_FIXTURE(own_graph, "folding gives the kernels' values and errors") {
  any_tensor i(constant({INT32_MIN, 7})), zero(constant({1, 0}));
  flat_graph f = folded(flat({i / -1, i - 1}));
  CHECK(value_of(f).data<std::int32_t>()[0] == INT32_MIN);
  CHECK(value_of(f, 1).data<std::int32_t>()[0] == INT32_MAX);
  any_tensor bad = i / zero;
  std::string e = testing::error_of([&] { folded(flat({bad})); });
  INFO(e);
  CHECK(e.starts_with("invalid_argument: [div]"));
  CHECK(e.find("node \"div") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "whatever fails while constants are folded names node and line") {
  any_tensor y = any_tensor(constant(1.f)) + 1;
  const auto error_with = [&](const plan::evaluator& evaluate) {
    return testing::error_of([&] {
      flat_graph f = flat({y});
      plan::fold(f.graph, f.fetches, evaluate);
    });
  };
  using values = std::vector<any_array>;
  const std::string where = str(", node \"add\" ", where_of(y.handle().node->location()));
  CHECK(y.handle().node->location().known());
  CHECK(error_with([](auto&, auto) -> values { throw std::bad_alloc(); }) ==
        str("resource_exhausted: out of memory", where));
  CHECK(error_with([](auto&, auto) -> values { throw std::runtime_error("it fails"); }) ==
        str("internal: it fails", where));
  CHECK(error_with([](auto&, auto) -> values { fail(errc::out_of_range, "it is too far"); }) ==
        str("out_of_range: it is too far", where));
}

TEST_CASE_FIXTURE(own_graph, "a node without a kernel on the host stays") {
  any_tensor y = any_tensor(constant(1.f)) + 1;
  flat_graph f = flat({y});
  plan::fold(f.graph, f.fetches, [](const node_def&, auto) { return std::vector<any_array>(); });
  // 1 and the literal 1 are one node.
  CHECK(ops_of(f.graph) == names{"constant", "add"});
}
