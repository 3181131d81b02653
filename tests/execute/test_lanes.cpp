// SPDX-License-Identifier: Apache-2.0
#include <deft/execute/lanes.hpp>

#include "op/modeling.hpp"
#include "plan/planning.hpp"

using namespace deft;
using namespace deft::ext;
using exec::lane_choice;
using exec::lane_entry;
using exec::lane_plan;
using exec::lane_planner;

namespace {

/// A graph of nodes that have only dependencies.
graph_def nodes(std::initializer_list<std::vector<std::uint32_t>> inputs) {
  graph_def g;
  for (const auto& in : inputs) {
    node_def n;
    for (auto i : in) n.inputs.push_back({i, 0});
    g.nodes.push_back(std::move(n));
  }
  return g;
}

/// "0 1 !0 | ?0 2": items in their lanes, !s gives signal s, ?s waits for it, =i for the work of i.
std::string text(const lane_plan& p) {
  return join(p.lanes, " | ", [](const lane_plan::lane& l) {
    return join(l.entries, " ", [](const lane_entry& e) {
      return str(e.what == lane_entry::item     ? ""
                 : e.what == lane_entry::signal ? "!"
                 : e.what == lane_entry::drain  ? "="
                                                : "?",
                 e.number);
    });
  });
}

std::string plan_of(const graph_def& g, std::vector<lane_choice> choices, int threads = 1) {
  lane_planner p(g);
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) p.add(i, i, choices[i]);
  return text(p.take(threads));
}

const lane_choice host{}, gpu{.device = 7, .quick = true}, waits{.waits = true},
    stream{.device = 7, .quick = true, .asynchronous = true},
    other{.device = 8, .quick = true, .asynchronous = true};

}  // namespace

TEST_CASE("the host's work is one lane, each device's work another") {
  CHECK(plan_of(nodes({{}, {0}, {1}}), {host, host, host}) == "0 1 2");
  CHECK(plan_of(nodes({{}, {0}, {1}, {0}}), {host, gpu, gpu, host}) == "0 !0 3 | ?0 1 2");
}

TEST_CASE("a control dependency on a device's work waits for its end") {
  graph_def g = nodes({{}, {0}, {}, {}, {}});
  g.nodes[2].controls = {0, 1};  // waiting for the last one suffices
  g.nodes[3].controls = {1};
  g.nodes[4].controls = {1};  // in the device's own order
  CHECK(plan_of(g, {stream, stream, host, other, stream}) == "0 1 =1 !0 !1 4 | ?0 2 | ?1 3");
  // The copy of a value has a separate wait.
  CHECK(plan_of(nodes({{}, {0}}), {stream, host}) == "0 !0 | ?0 1");
}

TEST_CASE("a lane that has waited for an item need not wait for those before it") {
  CHECK(plan_of(nodes({{}, {}, {1}, {0}}), {host, host, gpu, gpu}) == "0 1 !0 | ?0 2 3");
}

TEST_CASE("a value leaves its lane when it is made, not where it is used") {
  // 3 copies the value of 0 to the device.
  const lane_choice copy{.follows = 0};
  CHECK(plan_of(nodes({{}, {0}, {1}, {0}, {3}}), {host, host, host, copy, gpu}) ==
        "0 3 !0 1 2 | ?0 4");
}

TEST_CASE("a node that may wait has a separate lane, with the nodes that depend on it alone") {
  // 1 waits; 2 depends on it, 3 does not; 4 waits too, and 5 depends on both.
  CHECK(plan_of(nodes({{}, {}, {1}, {0}, {}, {2, 4}}), {host, waits, host, host, waits, host}) ==
        "0 3 | 1 2 !0 | 4 !1 | ?0 ?1 5");
}

TEST_CASE("nodes without an item pass their waits on") {
  graph_def g = nodes({{}, {}, {}, {2}});
  g.nodes[2].controls = {0, 1};  // a group
  lane_planner p(g);
  p.add(0, 0, host);
  p.add(1, 1, gpu);
  p.skip(2);
  p.add(3, 2, host);
  CHECK(text(p.take()) == "0 ?0 2 | 1 !0");
}

TEST_CASE("the host's work is split if every lane gets enough") {
  // Two chains of three, then their sum.
  const graph_def g = nodes({{}, {}, {0}, {1}, {2}, {3}, {4, 5}});
  auto of_cost = [&](double ns, int threads) {
    return plan_of(g, std::vector<lane_choice>(7, lane_choice{.cost = ns}), threads);
  };
  CHECK(of_cost(40'000, 2) == "0 2 4 ?0 6 | 1 3 5 !0");
  CHECK(of_cost(40'000, 1) == "0 1 2 3 4 5 6");
  CHECK(of_cost(5'000, 2) == "0 1 2 3 4 5 6");    // a hand-over would cost too much
  CHECK(of_cost(400'000, 2) == "0 1 2 3 4 5 6");  // the team splits each of them
  // Only as many lanes as pay off: a small separate item gets none.
  const graph_def more = nodes({{}, {}, {0}, {1}, {2}, {3}, {}});
  std::vector<lane_choice> costs(7, lane_choice{.cost = 90'000});
  costs[6].cost = 2'000;
  for (int threads : {2, 3, 8}) CHECK(plan_of(more, costs, threads) == "0 2 4 6 | 1 3 5");
  // A chain has nothing to split.
  CHECK(plan_of(nodes({{}, {0}, {1}, {2}}), std::vector<lane_choice>(4, {.cost = 80'000}), 2) ==
        "0 1 2 3");
}
