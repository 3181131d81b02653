// SPDX-License-Identifier: Apache-2.0
// deft/plan/place.ipp: requests, colocation groups and kernels against the devices there are.
#pragma once
#include <algorithm>
#include <deft/core/log.hpp>
#include <deft/device/kind.hpp>
#include <deft/plan/order.hpp>
#include <deft/plan/place.hpp>
#include <deft/plan/rewrite.hpp>
#include <map>
#include <optional>

namespace deft::ext {

namespace plan {
namespace {

class placer {
 public:
  placer(graph_def& g, std::span<edge_def> fetches, std::span<const device_info> devices,
         const placement_options& o)
      : graph_(g), fetches_(fetches), devices_(devices), options_(o) {}

  void run() {
    group_resources();
    std::vector<bool> followed(graph_.nodes.size());  // by what is where its first input is
    for (const auto& n : graph_.nodes)
      if (n.op->role == op_role::collective) followed[n.inputs[0].node] = true;
    std::vector<std::uint32_t> late;  // sources that go to their first user
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      node_def& n = graph_.nodes[i];
      if (n.op->role == op_role::collective || follows_input(n))
        n.device = graph_.nodes[n.inputs[0].node].device;
      else if (follows_user(n) && !followed[i])
        late.push_back(i);
      else
        n.device = orders(n) ? ordered(n, choose(n)) : choose(n);
      if (!n.device && follows_input(n)) late.push_back(i);
    }
    std::vector<placement> user(graph_.nodes.size(), nullptr);
    for (std::size_t i = graph_.nodes.size(); i-- > 0;)
      for (auto e : graph_.nodes[i].inputs)
        user[e.node] = graph_.nodes[i].device ? graph_.nodes[i].device : user[i];
    for (auto i : late) {
      node_def& n = graph_.nodes[i];
      n.device = user[i] && can_run(user[i], n) ? user[i] : choose(n);
    }
    repeat_constants();
  }

 private:
  /// Puts a constant on each task that uses it, as it would be sent there in each step.
  void repeat_constants() {
    struct use {
      std::uint32_t user, input;
    };
    std::vector<use> far;
    std::map<std::uint32_t, std::map<placement, std::uint32_t>> at;  // the nodes of a constant
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i)
      for (std::uint32_t k = 0; k < graph_.nodes[i].inputs.size(); ++k)
        if (const edge_def e = graph_.nodes[i].inputs[k]; is_sent(e, graph_.nodes[i]))
          far.push_back({i, k}), at[e.node];
    if (far.empty()) return;
    // Its own node moves to the first use, unless it is needed where it is.
    const auto keep = [&](std::uint32_t n) {
      if (const auto c = at.find(n); c != at.end()) c->second.emplace(graph_.nodes[n].device, n);
    };
    for (const edge_def f : fetches_) keep(f.node);
    for (const node_def& n : graph_.nodes) {
      for (const std::uint32_t c : n.controls) keep(c);
      for (const edge_def e : n.inputs)
        if (!is_sent(e, n)) keep(e.node);
    }
    const std::size_t written = graph_.nodes.size();
    for (const auto [user, input] : far) {
      const std::uint32_t constant = graph_.nodes[user].inputs[input].node;
      graph_.nodes[user].inputs[input].node =
          there(constant, graph_.nodes[user].device, at.at(constant));
    }
    if (graph_.nodes.size() > written) sort(graph_, fetches_);
  }
  /// Whether `user` needs a constant of another task that its own device can have.
  bool is_sent(edge_def e, const node_def& user) const {
    const node_def& n = graph_.nodes[e.node];
    return n.op->role == op_role::constant && n.controls.empty() && n.device != user.device &&
           user.op->role != op_role::collective &&
           n.device->task_name() != user.device->task_name() && can_run(user.device, n);
  }
  std::uint32_t there(std::uint32_t constant, placement device,
                      std::map<placement, std::uint32_t>& at) {
    const auto [known, fresh] = at.try_emplace(device, constant);
    if (!fresh) return known->second;
    if (at.size() > 1) {
      known->second = static_cast<std::uint32_t>(graph_.nodes.size());
      node_def copy = graph_.nodes[constant];
      copy.name = str(copy.name, "/copy_", at.size() - 1);
      graph_.nodes.push_back(std::move(copy));
    }
    node_def& n = graph_.nodes[known->second];
    n.requested = n.device = device;
    return known->second;
  }

  static bool follows_user(const node_def& n) {
    return !n.requested && n.inputs.empty() &&
           (n.op->role == op_role::constant || n.op->role == op_role::feed);
  }

  static bool follows_input(const node_def& n) {
    return !n.requested && n.op->is(op_traits::checks);
  }

  static bool orders(const node_def& n) { return !n.requested && n.op->role == op_role::order; }
  /// It computes nothing: where it waits for something of its task, instead of using a GPU alone.
  placement ordered(const node_def& n, placement alone) const {
    for (auto c : n.controls) {
      const placement d = graph_.nodes[c].device;
      if (d && d->task_name() == alone->task_name() && can_run(d, n)) return d;
    }
    return alone;
  }

  /// Those that the node itself uses: a function's are where its nodes are.
  static std::vector<resource_ref> resources_of(const node_def& n) {
    return n.op->resources ? n.op->resources(n.attributes) : std::vector<resource_ref>();
  }
  void group_resources() {
    for (const auto& n : graph_.nodes)
      for (auto& r : resources_of(n)) {
        auto& request = groups_[std::move(r.key)];
        if (n.requested) request = merge(*n.requested, request);
      }
  }

  /// The dtype by which a kernel is chosen.
  dtype type_of(const node_def& n) const {
    types_.clear();
    for (auto e : n.inputs) types_.push_back(graph_.nodes[e.node].outputs[e.port]);
    return dispatch_type(*n.op, types_, n.outputs);
  }
  bool has_kernels(const device_info& d, const node_def& n) const {
    if (!d.host && has_strings(n)) return false;
    if (n.op->role == op_role::call) return true;  // its functions are placed node by node
    const dtype type = type_of(n);
    if (!d.kernels->has(n.op->name, type)) return false;
    if (const program* p = program_in(n.attributes); p && !has_kernels(d, *p)) return false;
    return !holds_value(n) || has_updates(d, n.outputs[0].type);
  }
  /// Strings are in the host's memory alone.
  bool has_strings(const node_def& n) const {
    const auto is_string = [](const tensor_type& t) { return t.type == dtype::string; };
    return std::ranges::any_of(n.outputs, is_string) ||
           std::ranges::any_of(n.inputs, [&](edge_def e) {
             return is_string(graph_.nodes[e.node].outputs[e.port]);
           });
  }
  static bool has_kernels(const device_info& d, const program& p) {
    return std::ranges::all_of(
        p.code, [&](const instruction& c) { return d.kernels->has(c.op->name, operand_of(c, p)); });
  }
  static dtype operand_of(const instruction& c, const program& p) {
    return p.type_of(c.args[c.count - 1]);
  }
  static bool holds_value(const node_def& n) {
    return n.op->resources &&
           (is_update(n) || n.op->role == op_role::variable || n.op->role == op_role::read);
  }
  /// Whatever this run does to a variable, others may read and update it: its device can do all.
  static bool has_updates(const device_info& d, dtype type) {
    return std::ranges::all_of(catalog_ops(), [&](const op_def* o) {
      const bool update = o->role == op_role::update;
      return !o->resources || o->role == op_role::compute || (update && !is_numeric(type)) ||
             d.kernels->has(o->name, type);
    });
  }
  bool can_run(placement d, const node_def& n) const {
    for (const auto& i : devices_)
      if (i.name == d) return has_kernels(i, n);
    return false;
  }

  bool is_host(const std::string& type) const {
    return std::ranges::any_of(
        devices_, [&](const device_info& d) { return d.host && d.name->type == type; });
  }
  placement choose(const node_def& n) const {
    device_name request;
    if (n.requested) request = *n.requested;
    for (auto& r : resources_of(n)) request = merge(request, groups_.at(r.key));
    if (n.op->is(op_traits::on_processor) && !is_host(request.type)) {
      request.type.clear();
      request.index.reset();
    }
    if (auto d = best(n, with_task(request))) return d;
    const placement instead = best_instead(n, request);
    if (!options_.soft || !instead) refuse(n, request, instead);
    logging::info("node \"", n.name, "\" asks for ", to_string(request), " and is placed on ",
                  to_string(*instead));
    return instead;
  }
  /// Gives up the index, then the kind of device, then the task.
  placement best_instead(const node_def& n, const device_name& request) const {
    device_name relaxed = with_task(request);
    relaxed.index.reset();
    if (auto d = best(n, relaxed)) return d;
    relaxed.type.clear();
    if (auto d = best(n, relaxed)) return d;
    return best(n, with_task({}));
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

  placement best(const node_def& n, const device_name& request) const {
    const device_info* found = nullptr;
    for (const auto& d : devices_) {
      if (!matches(request, *d.name) || !has_kernels(d, n)) continue;
      if (d.name == options_.preferred && !n.op->resources) return d.name;
      if (!found || d.rank < found->rank) found = &d;
    }
    return found ? found->name : placement();
  }

  [[noreturn]] void refuse(const node_def& n, const device_name& request, placement instead) const {
    std::string there =
        join(devices_, ", ", [](const device_info& d) { return to_string(*d.name); });
    std::set<std::string> kinds;
    for (const auto& d : devices_)
      if (has_kernels(d, n)) kinds.insert(d.name->type);
    if (kinds.empty()) refuse_own(n);
    if (kinds.empty() && has_strings(n))
      throw error(errc::unimplemented, str("[", written_op(n), "] has no kernel for strings"),
                  n.name, n.location);
    throw error(errc::invalid_argument,
                str("[", written_op(n), "] cannot be placed on \"", to_string(request),
                    "\"; the devices are ", there, "; it has kernels for ", join(kinds, ", "),
                    advice(request, instead)),
                n.name, n.location);
  }
  /// Whether another process would have the job: the session knows none but its own.
  bool is_beyond_process(const device_name& request) const {
    const std::string own = "localhost";
    return !request.job.empty() && request.job != own && options_.default_task &&
           options_.default_task->job == own &&
           std::ranges::all_of(devices_, [&](const auto& d) { return d.name->job == own; });
  }
  /// What would help, if anything.
  std::string advice(const device_name& request, placement instead) const {
    std::vector<std::string> jobs, types;
    for (const device_kind* k : device_kinds()) types.emplace_back(k->type);
    for (const auto& d : devices_) jobs.push_back(d.name->job), types.push_back(d.name->type);
    device_name meant = request;
    meant.job = closest(request.job, jobs);
    meant.type = closest(request.type, types);
    if (!(meant == request)) {
      const bool there = std::ranges::any_of(
          devices_, [&](const device_info& d) { return matches(meant, *d.name); });
      return str("; did you mean ", to_string(meant), there ? "?" : "? It is not there either");
    }
    if (is_beyond_process(request))
      return "; this session is of this process alone: session s(self), of a task, or "
             "session(target) reaches the cluster";
    const device_name wanted = with_task(request);
    const bool own = options_.default_task && matches(wanted.task_name(), *options_.default_task);
    std::string more;
    if (own)
      for (const device_kind* k : device_kinds())
        for (const device_setting& s : k->settings)
          if (k->type == request.type && !s.advice.empty()) more += str("; ", s.advice);
    if (instead)
      more += str("; session_options.allow_soft_placement would place it on ", to_string(*instead));
    return more;
  }

  /// Where it is an operation of the program's own that no file has compiled, throws what to do.
  void refuse_own(const node_def& n) const {
    refuse_own(n, *n.op, type_of(n));
    if (const program* p = program_in(n.attributes))
      for (const auto& c : p->code) refuse_own(n, *c.op, operand_of(c, *p));
  }
  void refuse_own(const node_def& n, const op_def& op, dtype t) const {
    if (std::ranges::any_of(devices_, [&](const auto& d) { return d.kernels->has(op.name, t); }) ||
        std::ranges::count(catalog_ops(), &op))
      return;
    const std::string what = is_known(op) ? str(" for ", t) : std::string();
    throw error(errc::unimplemented,
                str("[", op.name, "] has no kernel", what, " in this program: ",
                    what.empty() || op.is(op_traits::elementwise)
                        ? str("a file that uses it", what, " must include deft/deft.hpp")
                        : str("its kernel_types lack ", t)),
                n.name, n.location);
  }

  graph_def& graph_;
  std::span<edge_def> fetches_;
  std::span<const device_info> devices_;
  const placement_options& options_;
  std::map<resource_key, device_name> groups_;
  mutable std::vector<tensor_type> types_;
};

}  // namespace

void place(graph_def& g, std::span<edge_def> fetches, std::span<const device_info> devices,
           const placement_options& options) {
  placer(g, fetches, devices, options).run();
}

}  // namespace plan
}  // namespace deft::ext
