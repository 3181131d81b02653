// SPDX-License-Identifier: Apache-2.0
#include <deft/plan/order.hpp>
#include <deft/session/session.hpp>
#include <deft/train/replicas/operations.hpp>

#include "planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::edge_def;
using testing::find_op_in;
using testing::flat;
using testing::own_graph;

namespace {
flat_graph ordered(flat_graph f) {
  plan::order_variables(f.graph, f.fetches);
  validate(f.graph);
  return f;
}
}  // namespace

TEST_CASE_FIXTURE(own_graph, "plain reads come before the updates of a run") {
  variable<float> v("v", 1.f);
  any_tensor up = v.assign_add(1.f).value(), read(v);
  flat_graph f = ordered(flat({up, read}));
  std::uint32_t r = find_op_in(f.graph, "variable"), u = find_op_in(f.graph, "assign_add");
  CHECK(r < u);
  CHECK(f.graph.nodes[u].controls == std::vector<std::uint32_t>{r});
  CHECK(f.fetches == std::vector<edge_def>{{u, 0}, {r, 0}});
  session s;
  s.run(initialize_all());
  for (float n = 1; n < 4; ++n) {
    auto [after, before] = s.run(up, read);
    CHECK(*before.data<float>() == n);
    CHECK(*after.data<float>() == n + 1);
  }
}

TEST_CASE_FIXTURE(own_graph, "small variables are sent before large ones") {
  auto on_ps = on(device("/job:ps/task:0/cpu:0"));
  variable<float, 100, 100> w1("w1", zeros());
  variable<float, 100> b1("b1", zeros());
  variable<float, 100, 10> w2("w2", zeros());
  variable<float, dyn, 10> unknown("unknown", ndarray<float, dyn, 10>(7));
  variable<float, 10> stays("stays", zeros());
  auto kept = sum(stays);
  auto on_worker = on(device("/job:worker/task:0/cpu:0"));
  any_tensor used = sum(matmul(w1, w2)) + sum(unknown) + sum(b1);
  flat_graph f = flat({any_tensor(kept), used});
  for (auto& n : f.graph.nodes) n.device = n.requested;
  plan::order_transfers(f.graph, f.fetches);
  validate(f.graph);
  std::vector<std::string> reads;
  for (const auto& n : f.graph.nodes)
    if (n.op->role == op_role::variable) reads.push_back(n.name);
  CHECK(reads == std::vector<std::string>{"b1", "w2", "w1", "unknown", "stays"});
}

TEST_CASE_FIXTURE(own_graph, "what begins a step comes before its variables") {
  auto on_ps = on(device("/job:ps/task:0/cpu:0"));
  variable<float> small("small", 1.f), stays("stays", 2.f);
  op::current_round begins;
  begins.barrier = "round";
  const any_tensor round(output{add_node(g, begins), 0});
  auto kept = stays * 2.f;
  auto on_worker = on(device("/job:worker/task:0/cpu:0"));
  any_tensor used = small * 3.f;
  SUBCASE("that others wait for") { used = used + cast<float>(round); }
  SUBCASE("that they do not wait for") {}
  flat_graph f = flat({any_tensor(kept), used, round});
  for (auto& n : f.graph.nodes) n.device = n.requested;
  plan::order_transfers(f.graph, f.fetches);
  CHECK(f.graph.nodes[0].op->name == "current_round");
}

TEST_CASE_FIXTURE(own_graph, "two unordered updates of one variable are an error naming both") {
  variable<float, 2> v("v", zeros());
  any_tensor a = v.assign_add(1.f).value(), b = v.assign(constant({1.f, 2.f})).value();
  std::string e = testing::error_of([&] { ordered(flat({a, b})); });
  INFO(e);
  CHECK(
      e.starts_with("invalid_argument: [assign] variable \"v\" is updated twice in one run, here "
                    "and by \"assign_add\" at test_order.cpp:"));
  CHECK(e.find(", in no order: use control_dependencies, node \"assign\" at test_order.cpp:") !=
        std::string::npos);
  variable<float> w("w", 0.f);
  CHECK_NOTHROW(ordered(flat({a, w.assign(1.f).value()})));
}

TEST_CASE_FIXTURE(own_graph, "updates that control dependencies or values order are allowed") {
  variable<float> v("v", 1.f);
  any_tensor first = v.assign_add(1.f).value();
  any_tensor second = [&] {
    auto after = control_dependencies(first);
    return any_tensor(v.assign(v * 10).value());
  }();
  any_tensor third = assign_sub(any_tensor(v), second * 0.5).value();
  flat_graph f = ordered(flat({third, first}));
  CHECK(find_op_in(f.graph, "assign_add") < find_op_in(f.graph, "read_variable"));
  CHECK(find_op_in(f.graph, "read_variable") < find_op_in(f.graph, "assign"));
  CHECK(find_op_in(f.graph, "assign") < find_op_in(f.graph, "assign_sub"));
  session s;
  s.run(initialize_all());
  auto [c, a] = s.run(third, first);
  CHECK(*a.data<float>() == 2.f);
  CHECK(*c.data<float>() == 10.f);
  CHECK(s.run(v) == 10.f);
}

TEST_CASE_FIXTURE(own_graph, "a value computed from a plain read may be used after the update") {
  variable<float> v("v", 3.f);
  any_tensor up = v.assign(any_tensor(v) * 2).value();
  any_tensor y = [&] {
    auto after = control_dependencies(up);
    return identity(any_tensor(v.read()));
  }();
  tensor<float> old = v;
  any_tensor both = any_tensor(old) + y * 100;
  session s;
  s.run(initialize_all());
  CHECK(*s.run(both).data<float>() == 603.f);
}

TEST_CASE_FIXTURE(own_graph, "equal names in different containers are different variables") {
  variable<float> v("v", 0.f, {.container = "a"});
  any_tensor up = v.assign(1.f).value();
  graph other;
  auto in = as_default(other);
  variable<float> w("v", 0.f, {.container = "b"});
  auto key = [](const any_tensor& t) {
    flat_graph f = flat({t});
    return resources_of(f.graph.nodes.back()).at(0).ref.key;
  };
  CHECK(key(v) == resource_key("variable", "a", "v"));
  CHECK(key(w) == resource_key("variable", "b", "v"));
  CHECK(key(up) == key(v));
  flat_graph f = flat({any_tensor(constant(1.f))});
  CHECK(resources_of(f.graph.nodes[0]).empty());
}

TEST_CASE_FIXTURE(own_graph, "sort and prune renumber references to nodes") {
  placeholder<float> x("x");
  any_tensor a = exp(any_tensor(x)), b = tanh(a);
  flat_graph f = flat({b, a});
  graph_def& g = f.graph;
  std::swap(g.nodes[0], g.nodes[2]);  // b, a, x
  g.nodes[0].inputs[0].node = 1;
  g.nodes[1].inputs[0].node = 2;
  f.fetches = {{0, 0}, {1, 0}};
  plan::sort(g, f.fetches);
  validate(g);
  CHECK(testing::ops_of(g) == testing::names{"placeholder", "exp", "tanh"});
  CHECK(f.fetches == std::vector<edge_def>{{2, 0}, {1, 0}});
  std::vector<edge_def> only{{1, 0}};
  plan::prune(g, only);
  CHECK(testing::ops_of(g) == testing::names{"placeholder", "exp"});
  g.nodes[0].controls = {1};
  CHECK(testing::error_of([&] { plan::sort(g, only); }) ==
        "internal: [plan] the graph has a cycle");
}

TEST_CASE_FIXTURE(own_graph,
                  "an update comes after the users of the old value in any order of fetches") {
  variable<float, 4> v("v", zeros());
  any_tensor up = v.assign_add(1.f).value(), loss = sum(square(any_tensor(v)));
  for (const bool update_first : {false, true}) {
    CAPTURE(update_first);
    flat_graph f = ordered(update_first ? flat({up, loss}) : flat({loss, up}));
    CHECK(find_op_in(f.graph, "square") < find_op_in(f.graph, "assign_add"));
  }
  // It comes first if the user waits for the update.
  any_tensor after = [&] {
    auto wait = control_dependencies(up);
    return exp(any_tensor(tensor<float, 4>(v)));
  }();
  flat_graph f = ordered(flat({after, up}));
  CHECK(find_op_in(f.graph, "assign_add") < find_op_in(f.graph, "exp"));
}

TEST_CASE_FIXTURE(own_graph,
                  "values for other tasks are computed before values that wait for them") {
  auto at = [](int task) { return device(str("/job:worker/task:", task)); };
  std::vector<any_tensor> sums, back;
  for (int i = 0; i < 3; ++i) {
    any_tensor made, used;
    if (auto there = on(at(1))) made = identity(any_tensor(constant(float(i))));
    if (auto here = on(at(0))) used = made + 1.f;
    if (auto there = on(at(1))) back.push_back(used * made);
  }
  flat_graph f = flat({back[0], back[1], back[2]});
  for (auto& n : f.graph.nodes)
    n.device = intern(parse_device(
        str("/job:worker/replica:0/task:", n.requested->task.value(), "/device:cpu:0")));
  plan::order_transfers(f.graph, f.fetches);
  validate(f.graph);
  std::vector<std::string> order;
  for (const auto& n : f.graph.nodes)
    if (n.op->name != "constant") order.push_back(std::string(n.op->name));
  CHECK(order == std::vector<std::string>{"identity", "identity", "identity", "add", "add", "add",
                                          "mul", "mul", "mul"});
}

TEST_CASE_FIXTURE(own_graph, "what waits for another device comes after what does not") {
  const auto at = [](int gpu) { return device(str("/gpu:", gpu)); };
  placeholder<float, 4> x("x");
  any_tensor other, first, last;
  if (auto there = on(at(1))) other = exp(any_tensor(x));
  if (auto here = on(at(0))) {
    first = tanh(any_tensor(x)) + other;
    last = sigmoid(any_tensor(x));
  }
  flat_graph f = flat({first, last});
  for (auto& n : f.graph.nodes)
    n.device =
        intern(parse_device(str("/job:localhost/replica:0/task:0/gpu:",
                                n.requested && n.requested->index ? *n.requested->index : 0)));
  plan::order_transfers(f.graph, f.fetches);
  validate(f.graph);
  std::vector<std::string> order;
  for (const auto& n : f.graph.nodes) order.push_back(std::string(n.op->name));
  CHECK(order == std::vector<std::string>{"placeholder", "tanh", "sigmoid", "exp", "add"});
}
