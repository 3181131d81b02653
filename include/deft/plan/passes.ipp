// SPDX-License-Identifier: Apache-2.0
// deft/plan/passes.ipp: from a flat graph to parts.
#pragma once
#include <algorithm>
#include <deft/core/log.hpp>
#include <deft/plan/checks.hpp>
#include <deft/plan/collectives.hpp>
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
  throw error(errc::internal, str("[plan] ", n.op->name, ": ", what), n.name, n.place);
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

prepared run_passes(flat_graph flat, std::span<const device_info> devices,
                    const pass_options& options, const evaluator& evaluate) {
  graph_def& g = flat.graph;
  prepared p;
  auto passed = [&](const char* what) {
    if (check_passes) validate(g);
    p.passes.push_back({what, g.nodes.size()});
  };
  passed("written");
  if (options.fuse) {
    raise_checks(g, flat.fetches);
    if (check_passes) validate(g);
  }
  if (options.fold) {
    repeat_last(g, flat.fetches);
    if (check_passes) validate(g);
    fold(g, flat.fetches, evaluate);
    passed("folding");
  }
  place(g, flat.fetches, devices, {options.own_task, options.allow_soft_placement});
  passed("placement");
  if (check_passes) check_placed(g);
  if (options.log_device_placement)
    for (const auto& n : g.nodes)
      logging::write(logging::level::info,
                     str(n.name, ": (", n.op->name, "): ", to_string(*n.device)));
  expand_collectives(g, flat.fetches);
  if (check_passes) validate(g);
  if (options.fuse) {
    auto can_run = [&](placement device, const op_def& made, dtype t) {
      auto at = std::ranges::find(devices, device, &device_info::name);
      return at != devices.end() && at->kernels->has(made.name, t);
    };
    follow_shapes(g, flat.fetches);
    if (check_passes) validate(g);
    subsume(g, flat.fetches);
    if (check_passes) validate(g);
    p.apart = fuse(g, flat.fetches, can_run);
    passed("fusion");
    for (const auto& n : g.nodes)
      if (const program* made = program_in(n.attributes))
        logging::log(logging::level::debug, n.op->name, " node ", n.name, ": ", made->signature);
    for (const auto& a : p.apart)
      logging::log(logging::level::debug, "fusion keeps ", a.node, " apart from ", a.user, ": ",
                   a.reason);
  }
  order_transfers(g, flat.fetches);
  order_variables(g, flat.fetches);
  passed("ordering");
  p.parts = cut(g, flat.fetches);
  if (check_passes)
    for (const auto& part : p.parts) check_part(part);
  p.placed = std::move(g);
  return p;
}

}  // namespace deft::ext::plan
