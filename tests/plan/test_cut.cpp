// SPDX-License-Identifier: Apache-2.0
#include <deft/plan/cut.hpp>
#include <deft/plan/passes.hpp>
#include <map>

#include "planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::device_at;
using testing::edge_def;
using testing::find_op_in;
using testing::flat;
using testing::names;
using testing::ops_of;
using testing::own_graph;

namespace {

const std::string ps = "/job:ps/replica:0/task:0", worker = "/job:worker/replica:0/task:0";

/// Nodes without a request go to the worker's /cpu:0.
std::vector<plan::part> cut(const flat_graph& f) {
  graph_def g = f.graph;
  for (auto& n : g.nodes)
    n.device =
        intern(merge(parse_device(worker + "/cpu:0"), n.requested ? *n.requested : device_name()));
  auto parts = plan::cut(g, f.fetches);
  for (const auto& p : parts) {
    validate(p.graph);
    for (const auto& n : p.graph.nodes) CHECK(plan::task_of(*n.device) == p.task);
  }
  return parts;
}
const plan::part& part_of(const std::vector<plan::part>& parts, const std::string& task) {
  for (const auto& p : parts)
    if (to_string(*p.task) == task) return p;
  FAIL("no part for ", task);
  return parts.front();
}
std::size_t count(const graph_def& g, std::string_view op) {
  return static_cast<std::size_t>(std::ranges::count(ops_of(g), op));
}
std::string text(const node_def& n, std::size_t attribute) {
  return std::get<std::string>(n.attributes[attribute]);
}
auto at_ps() { return on(device("/job:ps/replica:0/task:0/cpu:0")); }

}  // namespace

TEST_CASE_FIXTURE(own_graph, "the graph is checked after placement and after the cut") {
  placeholder<float, 2> x("x");
  const flat_graph f = flat({exp(any_tensor(x)) + any_tensor(x)});
  CHECK(testing::error_of([&] { plan::check_placed(f.graph); }).find("a node without a device") !=
        std::string::npos);
  const plan::part whole = cut(f).at(0);
  plan::check_part(whole);
  plan::part broken = whole;
  broken.graph.nodes[1].device = device_at(ps + "/cpu:0");
  CHECK(testing::error_of([&] { plan::check_part(broken); }).find("a node of another task") !=
        std::string::npos);
  broken.graph.nodes[1].device = device_at(worker + "/cpu:1");
  CHECK(testing::error_of([&] { plan::check_part(broken); }).find("a value of another device") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "a graph on one task is one part, unchanged") {
  placeholder<float, 2> x("x");
  any_tensor y = exp(any_tensor(x));
  auto parts = cut(flat({y, x}));
  REQUIRE(parts.size() == 1);
  CHECK(to_string(*parts[0].task) == worker);
  CHECK(ops_of(parts[0].graph) == names{"placeholder", "exp"});
  CHECK(parts[0].fetches == std::vector<edge_def>{{1, 0}, {0, 0}});
  CHECK(parts[0].fetch_numbers == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE_FIXTURE(own_graph, "a value is sent once to each task that needs it") {
  placeholder<float, dyn, 3> x("x");
  any_tensor ax(x), shared = exp(ax);
  auto remote = [&] {
    auto there = at_ps();
    return std::vector{tanh(shared), shared * shared};
  }();
  auto parts = cut(flat({remote[0], remote[1], shared}));
  REQUIRE(parts.size() == 2);
  const plan::part &from = part_of(parts, worker), &to = part_of(parts, ps);
  CHECK(ops_of(from.graph) == names{"placeholder", "exp", "send"});
  CHECK(ops_of(to.graph) == names{"recv", "tanh", "mul"});
  const node_def &send = from.graph.nodes[2], &recv = to.graph.nodes[0];
  CHECK(text(send, 0) == text(recv, 0));
  CHECK(text(send, 1) == ps);
  CHECK(text(recv, 1) == worker);
  CHECK(recv.outputs[0] == shared.handle().type());
  CHECK(send.name == "exp/send");
  CHECK(recv.name == "exp/recv");
  CHECK(from.fetch_numbers == std::vector<std::uint32_t>{2});
  CHECK(to.fetch_numbers == std::vector<std::uint32_t>{0, 1});
  CHECK(to.fetches == std::vector<edge_def>{{1, 0}, {2, 0}});
}

TEST_CASE_FIXTURE(own_graph, "every transfer has a different key") {
  placeholder<float> x("x");
  any_tensor y(x);
  for (int i = 0; i < 6; ++i)
    y = i % 2 ? exp(y) : on(device(ps + "/cpu:0"), [&] { return tanh(y); });
  auto parts = cut(flat({y}));
  std::map<std::string, int> keys;
  for (const auto& p : parts)
    for (const auto& n : p.graph.nodes)
      if (n.op->name == "send" || n.op->name == "recv") ++keys[text(n, 0)];
  CHECK(keys.size() == 6);
  for (const auto& [key, uses] : keys) CHECK(uses == 2);
}

TEST_CASE_FIXTURE(own_graph, "a value is copied once between two devices of a task") {
  placeholder<float, 2> x("x");
  any_tensor a = exp(any_tensor(x));
  auto other = [&] {
    auto there = on(device("/gpu:0"));
    return std::vector{tanh(a), a * a};
  }();
  any_tensor back = other[0] + other[1];
  auto parts = cut(flat({back}));
  REQUIRE(parts.size() == 1);
  const graph_def& g = parts[0].graph;
  CHECK(ops_of(g) == names{"placeholder", "exp", "copy", "tanh", "mul", "copy", "copy", "add"});
  CHECK(text(g.nodes[2], 0) == worker + "/gpu:0");
  CHECK(g.nodes[2].device == device_at(worker + "/gpu:0"));
  CHECK(text(g.nodes[5], 0) == worker + "/cpu:0");
}

TEST_CASE_FIXTURE(own_graph, "a transfer between devices of two tasks goes through the hosts") {
  placeholder<float, 2> x("x");
  any_tensor a = on(device("/gpu:0"), [&] { return exp(any_tensor(x)); });
  any_tensor b = on(device(ps + "/gpu:1"), [&] { return tanh(a); });
  auto parts = cut(flat({b}));
  const plan::part &from = part_of(parts, worker), &to = part_of(parts, ps);
  CHECK(ops_of(from.graph) == names{"placeholder", "copy", "exp", "copy", "send"});
  CHECK(ops_of(to.graph) == names{"recv", "copy", "tanh"});
  CHECK(from.graph.nodes[4].device == device_at(worker + "/cpu:0"));
  CHECK(to.graph.nodes[0].device == device_at(ps + "/cpu:0"));
}

TEST_CASE_FIXTURE(own_graph, "a control dependency between tasks sends a byte after the node") {
  variable<float> v("v", 0.f);
  any_tensor up = [&] {
    auto there = at_ps();
    variable<float> w("w", 0.f);
    return any_tensor(w.assign_add(1.f).value());
  }();
  operation both;
  any_tensor after_it, after_too;
  {
    auto after = control_dependencies(up);
    after_it = v.assign(1.f).value();
    after_too = random_uniform(shape<2>);
  }
  auto parts = cut(flat({after_it, after_too}));
  const plan::part &from = part_of(parts, ps), &to = part_of(parts, worker);
  CHECK(count(from.graph, "send") == 1);
  CHECK(count(to.graph, "recv") == 1);
  std::uint32_t update = find_op_in(from.graph, "assign_add"),
                send = find_op_in(from.graph, "send");
  const node_def& byte = from.graph.nodes[from.graph.nodes[send].inputs[0].node];
  CHECK(byte.controls == std::vector<std::uint32_t>{update});
  CHECK(byte.outputs[0] == tensor_type{dims{}, dtype::uint8});
  CHECK(update < send);
  std::uint32_t recv = find_op_in(to.graph, "recv");
  CHECK(to.graph.nodes[find_op_in(to.graph, "assign")].controls ==
        std::vector<std::uint32_t>{recv});
  CHECK(to.graph.nodes[find_op_in(to.graph, "random_uniform")].controls ==
        std::vector<std::uint32_t>{recv});
}

TEST_CASE_FIXTURE(own_graph, "a node that waits for several of another task waits for one byte") {
  std::vector<node_ref> there;
  {
    auto scope = at_ps();
    for (int i = 0; i < 3; ++i)
      there.push_back(variable<float>(str("w", i), 0.f).assign_add(1.f).handle());
  }
  variable<float> v("v", 0.f);
  const auto after = [&](std::vector<node_ref> these) {
    const control_scope scope(std::move(these));
    return v.assign(1.f).value();
  };
  const auto parts =
      cut(flat({after({there[2], there[0]}), after({there[0], there[2]}), after({there[1]})}));
  const plan::part &from = part_of(parts, ps), &to = part_of(parts, worker);
  CHECK(count(to.graph, "recv") == 2);
  std::vector<std::vector<std::string>> awaited;
  for (const node_def& send : from.graph.nodes)
    if (send.op->name == "send") {
      awaited.emplace_back();
      for (const auto c : from.graph.nodes[send.inputs[0].node].controls)
        awaited.back().push_back(from.graph.nodes[c].name);
      std::ranges::sort(awaited.back());
    }
  CHECK(awaited ==
        std::vector<std::vector<std::string>>{{"assign_add", "assign_add_2"}, {"assign_add_1"}});
}

TEST_CASE_FIXTURE(own_graph,
                  "every part keeps the order of the graph, so that no parts wait in a cycle") {
  placeholder<float> x("x"), y("y");
  any_tensor a(x), b(y);
  for (int i = 0; i < 20; ++i) {
    any_tensor next_a = on(device(ps + "/cpu:0"), [&] { return exp(b) + a; });
    b = tanh(a) * b;
    a = next_a;
  }
  flat_graph f = flat({a, b});
  auto parts = cut(f);
  REQUIRE(parts.size() == 2);
  // Runs the parts in turn, each until it needs a missing value.
  std::map<std::string, bool> sent;
  std::size_t at[2] = {}, left = parts[0].graph.nodes.size() + parts[1].graph.nodes.size();
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t p = 0; p < 2; ++p)
      for (const auto& nodes = parts[p].graph.nodes; at[p] < nodes.size(); ++at[p]) {
        const node_def& n = nodes[at[p]];
        if (n.op->name == "recv" && !sent[text(n, 0)]) break;
        if (n.op->name == "send") sent[text(n, 0)] = true;
        moved = true, --left;
      }
  }
  CHECK(left == 0);
  std::map<std::string, std::size_t> number;
  for (std::size_t i = 0; i < f.graph.nodes.size(); ++i) number[f.graph.nodes[i].name] = i;
  for (const auto& p : parts) {
    std::size_t last = 0;
    for (const auto& n : p.graph.nodes)
      if (auto known = number.find(n.name); known != number.end()) {
        CHECK(known->second >= last);
        last = known->second;
      }
  }
}

TEST_CASE_FIXTURE(own_graph, "an operation is fetched from the task that runs it") {
  operation both = [&] {
    auto there = at_ps();
    variable<float> w("w", 0.f), v("v", 0.f);
    return group(w.assign(1.f), v.assign(2.f));
  }();
  auto parts = cut(flat(both));
  const plan::part& p = part_of(parts, worker);  // groups run anywhere
  REQUIRE(p.fetches.size() == 1);
  CHECK(p.graph.nodes[p.fetches[0].node].op->name == "group");
  CHECK(count(p.graph, "recv") == 1);  // for both
}
