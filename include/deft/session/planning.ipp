// SPDX-License-Identifier: Apache-2.0
// deft/session/planning.ipp: from a flat graph to parts.
#pragma once
#include <algorithm>
#include <deft/core/log.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/plan/fold.hpp>
#include <deft/plan/fuse.hpp>
#include <deft/plan/variables.hpp>
#include <deft/session/planning.hpp>

namespace deft {

std::vector<any_array> evaluate_on_host(const node_def& n, std::span<const any_array> inputs) {
  auto factory = find_cpu_kernel(n.op->name);
  if (!factory) return {};
  std::vector<tensor_type> in;
  std::vector<const void*> data;
  for (const auto& a : inputs) {
    in.push_back({a.shape(), a.type()});
    data.push_back(a.raw());
  }
  kernel_ptr k = factory(n, in);
  std::vector<any_array> values;
  std::vector<void*> out;
  for (const auto& o : n.outputs) {
    values.emplace_back(o.type, o.shape);
    out.push_back(values.back().mutable_raw());
  }
  k->prepare(in, n.outputs);
  step_info step;
  k->run({data.data(), out.data(), &step});
  return values;
}

prepared_plan make_parts(flat_graph flat, std::span<const device_info> devices,
                         const device_name& own_task, const session_options& options) {
  graph_def& g = flat.graph;
  prepared_plan p;
  auto passed = [&](const char* what) {
    check(g);
    p.passes.push_back({what, g.nodes.size()});
  };
  passed("written");
  if (options.fold) {
    plan::fold(g, flat.fetches, evaluate_on_host);
    passed("folded");
  }
  plan::place(g, devices, {&own_task, options.allow_soft_placement});
  passed("placed");
  if (options.log_device_placement)
    for (const auto& n : g.nodes)
      logging::write(logging::level::info,
                     str(n.name, ": (", n.op->name, "): ", to_string(*n.device)));
  if (options.fuse) {
    plan::fuse(g, flat.fetches, [&](const device_name* device) {
      auto at = std::ranges::find(devices, device, &device_info::name);
      return at != devices.end() && at->kernels->contains(std::string(op::fused::name));
    });
    passed("fused");
  }
  plan::order_variables(g, flat.fetches);
  passed("ordered");
  p.parts = plan::cut(g, flat.fetches);
  for (const auto& part : p.parts) check(part.graph);
  p.placed = std::move(g);
  return p;
}

}  // namespace deft
