// SPDX-License-Identifier: Apache-2.0
// deft/plan/place.ipp: requests, colocation groups and kernels against the devices there are.
#pragma once
#include <algorithm>
#include <deft/core/log.hpp>
#include <deft/op/catalog.hpp>
#include <deft/plan/place.hpp>
#include <deft/plan/variables.hpp>
#include <map>
#include <optional>

namespace deft {

std::string to_string(const device_info& d) {
  std::string s = to_string(*d.name) + " (" + d.description;
  if (d.memory) s += str(", ", static_cast<double>(d.memory / 100'000'000) / 10, " GB");
  if (!d.bus_id.empty()) s += ", " + d.bus_id;
  return s + ")";
}

namespace plan {
namespace {

class placer {
 public:
  placer(graph_def& g, std::span<const device_info> devices, const placement_options& o)
      : graph_(g), devices_(devices), options_(o) {}

  void run() {
    group_variables();
    std::vector<std::uint32_t> late;  // sources that go to their first user
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      node_def& n = graph_.nodes[i];
      if (follows_user(n))
        late.push_back(i);
      else
        n.device = choose(n);
    }
    std::vector<const device_name*> user(graph_.nodes.size(), nullptr);
    for (std::size_t i = graph_.nodes.size(); i-- > 0;)
      for (auto e : graph_.nodes[i].inputs) user[e.node] = graph_.nodes[i].device;
    for (auto i : late) {
      node_def& n = graph_.nodes[i];
      n.device = user[i] && can_run(*user[i], n) ? user[i] : choose(n);
    }
  }

 private:
  static bool follows_user(const node_def& n) {
    return !n.requested && n.inputs.empty() &&
           (n.op == &record_of<op::constant> || n.op == &record_of<op::feed>);
  }

  void group_variables() {
    for (const auto& n : graph_.nodes)
      if (auto v = variable_of(n)) {
        auto& request = groups_[*v];
        if (n.requested) request = merge(*n.requested, request);
      }
  }

  /// Whatever this run does to a variable, others may read and update it: its device can do all.
  static bool has_kernels(const device_info& d, const node_def& n) {
    auto has = [&](std::string_view op) { return d.kernels->contains(std::string(op)); };
    if (!variable_of(n)) return has(n.op->name);
    return has(op::variable::name) && has(op::read_variable::name) && has(op::assign::name) &&
           (!is_numeric(n.outputs[0].type) ||
            (has(op::assign_add::name) && has(op::assign_sub::name)));
  }
  bool can_run(const device_name& d, const node_def& n) const {
    for (const auto& i : devices_)
      if (i.name == &d) return has_kernels(i, n);
    return false;
  }

  const device_name* choose(const node_def& n) const {
    device_name request;
    if (n.requested) request = *n.requested;
    if (auto v = variable_of(n)) request = groups_.at(*v);
    if (auto* d = best(n, with_task(request))) return d;
    if (options_.soft) {
      // Give up the index, then the kind of device, then the task.
      device_name relaxed = with_task(request);
      for (int step = 0; step < 3; ++step) {
        if (step == 0) relaxed.index.reset();
        if (step == 1) relaxed.type.clear();
        if (step == 2) relaxed = with_task({});
        if (auto* d = best(n, relaxed)) {
          logging::info("node \"", n.name, "\" asks for ", to_string(request), " and is placed on ",
                        to_string(*d));
          return d;
        }
      }
    }
    refuse(n, request);
  }

  device_name with_task(device_name r) const {
    return options_.default_task ? merge(default_fields(r), r) : r;
  }
  /// The session's own task stands in only where the request names no other job.
  device_name default_fields(const device_name& r) const {
    device_name d = *options_.default_task;
    if (!r.job.empty() && r.job != d.job) d.task.reset();
    return d;
  }

  const device_name* best(const node_def& n, const device_name& request) const {
    // GPUs first, then processors, then what is neither.
    auto rank = [](const device_name& d) { return d.type == "gpu" ? 0 : d.type == "cpu" ? 1 : 2; };
    const device_name* found = nullptr;
    for (const auto& d : devices_)
      if (matches(request, *d.name) && has_kernels(d, n) &&
          (!found || rank(*d.name) < rank(*found)))
        found = d.name;
    return found;
  }

  [[noreturn]] void refuse(const node_def& n, const device_name& request) const {
    std::string there =
        join(devices_, ", ", [](const device_info& d) { return to_string(*d.name); });
    std::set<std::string> kinds;
    for (const auto& d : devices_)
      if (has_kernels(d, n)) kinds.insert(d.name->type);
    throw error(errc::invalid_argument,
                str("[", n.op->name, "] cannot be placed on \"", to_string(request),
                    "\"; there are the devices ", there, ", and kernels for ",
                    kinds.empty() ? std::string("none") : join(kinds, ", ")),
                n.name, n.place);
  }

  graph_def& graph_;
  std::span<const device_info> devices_;
  const placement_options& options_;
  std::map<variable_key, device_name> groups_;
};

}  // namespace

void place(graph_def& g, std::span<const device_info> devices, const placement_options& options) {
  placer(g, devices, options).run();
}

}  // namespace plan
}  // namespace deft
