// SPDX-License-Identifier: Apache-2.0
// deft/plan/passes.ipp: from a flat graph to parts.
#pragma once
#include <algorithm>
#include <deft/core/log.hpp>
#include <deft/graph/function.hpp>
#include <deft/plan/checks.hpp>
#include <deft/plan/collectives.hpp>
#include <deft/plan/fuse_folds.hpp>
#include <deft/plan/order.hpp>
#include <deft/plan/passes.hpp>
#include <deft/plan/place.hpp>
#include <deft/plan/shapes.hpp>
#include <deft/plan/subsume.hpp>

namespace deft::ext::plan {
namespace {

#ifdef NDEBUG
constexpr bool check_passes = false;
#else
constexpr bool check_passes = true;
#endif

[[noreturn]] void broken(const node_def& n, const char* what) {
  throw error(errc::internal, str("[plan] ", n.op->name, ": ", what), n.name, n.location);
}

}  // namespace

void check_placed(const graph_def& g) {
  for (const auto& n : g.nodes)
    if (!n.device || !n.device->full()) broken(n, "a node without a device");
}

void check_part(const part& p) {
  validate(p.graph);
  validate(p.graph, p.fetches);
  check_placed(p.graph);
  for (const auto& n : p.graph.nodes) {
    if (task_of(*n.device) != p.task) broken(n, "a node of another task");
    if (n.op->role == op_role::copy) continue;
    for (auto e : n.inputs)
      if (p.graph.nodes[e.node].device != n.device) broken(n, "a value of another device");
  }
}

namespace {

/// The passes, over a graph and then over the functions that its nodes call.
class pipeline {
 public:
  pipeline(std::span<const device_info> devices, const pass_options& options,
           const evaluator& evaluate)
      : devices_(devices), options_(options), evaluate_(evaluate) {}

  /// All but cutting. `passed` is told when a pass is done. `preferred`: see placement_options.
  template <class Passed>
  std::vector<unfused_edge> run(graph_def& g, std::vector<edge_def>& fetches, placement own_task,
                                placement preferred, const Passed& passed) {
    std::vector<unfused_edge> apart;
    if (options_.fuse) {
      raise_checks(g, fetches);
      if (check_passes) validate(g);
    }
    if (options_.fold) {
      repeat_last(g, fetches);
      if (check_passes) validate(g);
      fold(g, fetches, evaluate_);
      passed("folding");
    }
    place(g, fetches, devices_, {own_task, options_.allow_soft_placement, preferred});
    passed("placement");
    if (check_passes) check_placed(g);
    if (options_.log_device_placement)
      for (const auto& n : g.nodes)
        logging::write(logging::level::info,
                       str(n.name, ": (", n.op->name, "): ", to_string(*n.device)));
    expand_collectives(g, fetches);
    if (check_passes) validate(g);
    if (options_.fuse) {
      auto can_run = [&](placement device, const op_def& made, dtype t) {
        auto at = std::ranges::find(devices_, device, &device_info::name);
        return at != devices_.end() && at->kernels->has(made.name, t);
      };
      follow_shapes(g, fetches);
      if (check_passes) validate(g);
      subsume(g, fetches);
      if (check_passes) validate(g);
      apart = fuse(g, fetches, can_run);
      if (check_passes) validate(g);
      fuse_folds(g, fetches, can_run);
      passed("fusion");
      for (const auto& n : g.nodes)
        if (const program* made = program_in(n.attributes))
          logging::log(logging::level::debug, n.op->name, " node ", n.name, ": ", made->signature);
      for (const auto& a : apart)
        logging::log(logging::level::debug, "fusion keeps ", a.node, " apart from ", a.user, ": ",
                     a.reason);
    }
    order_transfers(g, fetches);
    order_variables(g, fetches);
    passed("ordering");
    for (node_def& n : g.nodes)
      if (n.op->role == op_role::call)
        change_functions(n.attributes, [&](function_def& f) { run_body(f, n); });
    return apart;
  }

 private:
  /// A body is run on the task of the node that calls it, where its parameters and results are.
  void run_body(function_def& f, const node_def& caller) {
    for (node_def& n : f.body.nodes)
      if (n.op->role == op_role::feed) n.requested = caller.device;
    const placement task = task_of(*caller.device);
    run(f.body, f.results, task, caller.device, [&](const char*) {
      if (check_passes) validate(f.body);
    });
    for (const node_def& n : f.body.nodes)
      if (task_of(*n.device) != task)
        throw error(errc::unimplemented,
                    str("[", written_op(n), "] is on ", to_string(*n.device), ", and \"",
                        caller.name, "\", which calls \"", f.name, "\", on ",
                        to_string(*caller.device), ": the body of a function runs on one task"),
                    n.name, n.location);
    part p = cut_body(f.body, f.results, caller.device);
    f.body = std::move(p.graph);
    f.results = std::move(p.fetches);
  }

  const std::span<const device_info> devices_;
  const pass_options& options_;
  const evaluator& evaluate_;
};

}  // namespace

prepared run_passes(flat_graph flat, std::span<const device_info> devices,
                    const pass_options& options, const evaluator& evaluate) {
  graph_def& g = flat.graph;
  prepared p;
  auto passed = [&](const char* what) {
    if (check_passes) validate(g);
    p.passes.push_back({what, g.nodes.size()});
  };
  passed("written");
  p.apart =
      pipeline(devices, options, evaluate).run(g, flat.fetches, options.own_task, nullptr, passed);
  p.parts = cut(g, flat.fetches);
  if (check_passes)
    for (const auto& part : p.parts) check_part(part);
  p.placed = std::move(g);
  return p;
}

}  // namespace deft::ext::plan
