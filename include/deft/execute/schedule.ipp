// SPDX-License-Identifier: Apache-2.0
// deft/execute/schedule.ipp: a part compiled into lanes.
#pragma once
#include <algorithm>
#include <deft/execute/lanes.hpp>
#include <deft/execute/memory_plan.hpp>
#include <deft/execute/schedule.hpp>
#include <deft/execute/team.hpp>
#include <deft/op/constant.hpp>
#include <deft/op/plan/feed.hpp>
#include <unordered_map>

namespace deft {
namespace exec {
namespace {

/// Makes the tables of a part: values and items, then the lanes' order, then memory.
class compiler {
 public:
  compiler(executable::compiled& c, const task_resources& task)
      : c_(c), task_(task), planner_(c.part.graph) {}

  void run() {
    auto& nodes = c_.part.graph.nodes;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      try {
        add(i);
      } catch (const error& e) {
        throw error(e.code(), e.message(), e.node().empty() ? nodes[i].name : e.node(),
                    nodes[i].place, nodes[i].device ? to_string(*nodes[i].device) : std::string());
      }
    }
    for (auto e : c_.part.fetches) fetch(e);
    put_in_order();
    plan_memory(c_);
    c_.may_park = c_.lanes.size() > 1 || !c_.devices.empty() || !c_.performers.empty();
  }

 private:
  device_runtime& device_of(const node_def& n) const {
    for (const auto& d : task_.devices)
      if (d->info().name == n.device) return *d;
    fail(errc::invalid_argument, "[", n.op->name, "] there is no device \"",
         n.device ? to_string(*n.device) : "", "\" on this task");
  }
  std::uint32_t space_of(device_runtime& d) {
    for (std::uint32_t s = 0; s < c_.spaces.size(); ++s)
      if (&c_.spaces[s].device->space() == &d.space()) return s;
    c_.spaces.push_back({&d});
    return static_cast<std::uint32_t>(c_.spaces.size() - 1);
  }
  void use(device_runtime& d) {
    if (d.asynchronous() && !std::ranges::count(c_.devices, &d)) c_.devices.push_back(&d);
  }

  void add(std::uint32_t number) {
    const node_def& n = c_.part.graph.nodes[number];
    device_runtime& device = device_of(n);
    use(device);
    const auto first = static_cast<std::uint32_t>(c_.values.size());
    c_.first_value.push_back(first);
    for (std::uint32_t o = 0; o < n.outputs.size(); ++o) {
      value_info v;
      v.declared = n.outputs[o];
      v.node = number;
      v.root = first + o;
      v.space = space_of(device);
      v.device = &device;
      if (!v.declared.shape.is_static()) v.shape = c_.shapes++;
      c_.values.push_back(v);
    }
    switch (n.op->role) {
      case op_role::constant:
        add_constant(n, first, device);
        return planner_.skip(number);
      case op_role::feed:
        add_feed(n, first, device);
        return planner_.skip(number);
      case op_role::order:
        return planner_.skip(number);
      default:
        break;
    }
    item i;
    i.node = number;
    i.device = &device;
    i.on_host = device.space().on_host();
    i.first_out = first;
    i.outs = static_cast<std::uint32_t>(n.outputs.size());
    i.first_in = static_cast<std::uint32_t>(c_.inputs.size());
    i.ins = static_cast<std::uint32_t>(n.inputs.size());
    for (auto e : n.inputs) {
      const std::uint32_t v = c_.first_value[e.node] + e.port;
      c_.inputs.push_back(v);
      ++c_.values[v].uses;
      i.dynamic |= !c_.values[v].declared.shape.is_static();
    }
    for (const auto& o : n.outputs) i.dynamic |= !o.shape.is_static();
    lane_choice lane = classify(n, i);
    if (i.what == action::run || i.what == action::update) {
      kernel_ptr k;
      if (threads_ > 1 && i.on_host) k = c_.make_kernel(i);
      if (k && !i.dynamic) lane.cost = k->cost();
      kernels_.resize(items_.size());
      kernels_.push_back(std::move(k));
    }
    planner_.add(number, static_cast<std::uint32_t>(items_.size()), lane);
    items_.push_back(i);
  }

  /// On the device once for all runs.
  void add_constant(const node_def& n, std::uint32_t value, device_runtime& device) {
    const any_array a = decode<op::constant>(n.attributes).value;
    buffer elements = a.storage();
    if (!device.space().on_host()) {
      elements = buffer(device.space().allocate(std::max<std::size_t>(a.bytes(), 1)));
      if (auto e = device.copy_in(elements.data(), a.raw(), a.bytes(), a.storage())) {
        device.wait(e);
        e->synchronize();
      }
    }
    c_.constants.emplace_back(value, std::move(elements));
  }
  void add_feed(const node_def& n, std::uint32_t value, device_runtime& device) {
    c_.feed_values.push_back(value);
    c_.feed_numbers.push_back(static_cast<std::uint32_t>(decode<op::feed>(n.attributes).index));
    value_info& v = c_.values[value];
    if (!device.space().on_host()) {
      v.where = home::own;
      if (device.asynchronous()) v.event = c_.events++;
    }
  }

  std::uint32_t input(const item& i, std::uint32_t k) const { return c_.inputs[i.first_in + k]; }
  device_runtime& device_of_input(const item& i) const { return *c_.values[input(i, 0)].device; }

  lane_choice classify(const node_def& n, item& i) {
    lane_choice lane{.device = i.on_host ? none : space_of(*i.device), .quick = !i.on_host};
    lane.waits = n.op->is(op_traits::waits);
    if (const kernel_entry* k = i.device->find_kernel(n.op->name); k && k->make_value) {
      i.what = action::perform;
      i.number = static_cast<std::uint32_t>(c_.performers.size());
      c_.performers.push_back(k->make_value({n, *task_.store, c_.sends, c_.receives}));
      for (std::uint32_t a = 0; a < i.ins; ++a) keep(input(i, a));
      if (n.op->role == op_role::send) {
        lane.follows = n.inputs[0].node;
        lane.alone = c_.values[input(i, 0)].event != none;
      }
      return lane;
    }
    switch (n.op->role) {
      case op_role::variable:
      case op_role::read:
      case op_role::assign:
      case op_role::update: {
        const resource_ref r = n.op->resource(n.attributes);
        auto slot = find_variable(*task_.store, r.key, r.holds);
        i.variable = slot.get();
        c_.resources.push_back(std::move(slot));
        i.what = n.op->role == op_role::assign   ? action::assign
                 : n.op->role == op_role::update ? action::update
                                                 : action::read;
        if (i.what == action::assign) keep(input(i, 0));
        break;
      }
      case op_role::alias:
        i.what = action::alias;
        c_.values[i.first_out].root = c_.values[input(i, 0)].root;
        break;
      case op_role::placeholder:
        i.what = action::refuse;
        break;
      case op_role::copy:
        classify_copy(n, i, lane);
        break;
      default:
        i.what = action::run;
    }
    return lane;
  }
  void classify_copy(const node_def& n, item& i, lane_choice& lane) {
    device_runtime& from = device_of_input(i);
    i.what = action::copy;
    keep(input(i, 0));
    lane.follows = n.inputs[0].node;
    if (!from.space().on_host()) lane.device = space_of(from), lane.quick = true;
    if (from.space().on_host() && i.on_host) return;  // the same elements
    value_info& v = c_.values[i.first_out];
    if (from.asynchronous() || i.device->asynchronous()) v.event = c_.events++;
    v.where = home::own;
  }

  void fetch(edge_def e) {
    const std::uint32_t v = e.port == run_only ? none : c_.first_value[e.node] + e.port;
    c_.fetch_values.push_back(v);
    if (v == none) return;
    keep(v);
    device_runtime& device = *c_.values[v].device;
    if (device.space().on_host()) return;
    item i;
    i.what = action::fetch;
    i.node = e.node;
    i.device = &device;
    i.on_host = false;
    i.first_in = static_cast<std::uint32_t>(c_.inputs.size());
    i.ins = 1;
    c_.inputs.push_back(v);
    ++c_.values[v].uses;
    i.number = static_cast<std::uint32_t>(c_.fetch_values.size() - 1);
    planner_.add_fetch(e.node, static_cast<std::uint32_t>(items_.size()),
                       {.device = space_of(device), .quick = true});
    items_.push_back(i);
  }

  void keep(std::uint32_t value) {
    c_.values[c_.values[value].root].escapes = true;
    ++c_.values[value].uses;
  }

  /// Items lane after lane, with the signals between them.
  void put_in_order() {
    lane_plan plan = planner_.take(threads_);
    kernels_.resize(items_.size());
    c_.signals = plan.signals;
    for (const auto& lane : plan.lanes) {
      lane_info l;
      l.first = static_cast<std::uint32_t>(c_.items.size());
      l.quick = lane.quick;
      l.parallel = lane.parallel;
      c_.parallel |= lane.parallel;
      for (const auto& entry : lane.entries) {
        if (entry.what == lane_entry::item) {
          c_.items.push_back(items_[entry.number]);
          c_.kernels.resize(c_.items.size());
          c_.kernels.back() = std::move(kernels_[entry.number]);
          item& i = c_.items.back();
          for (std::uint32_t a = 0; a < i.ins; ++a)
            i.awaits |= c_.values[c_.values[input(i, a)].root].event != none;
          continue;
        }
        item i;
        i.what = entry.what == lane_entry::signal ? action::signal : action::wait;
        i.number = entry.number;
        c_.items.push_back(i);
      }
      l.end = static_cast<std::uint32_t>(c_.items.size());
      c_.lanes.push_back(l);
    }
  }

  executable::compiled& c_;
  const task_resources& task_;
  lane_planner planner_;
  std::vector<item> items_;
  std::vector<kernel_ptr> kernels_;  ///< by number of items_
  const int threads_ = intra_op_threads();
};

}  // namespace
}  // namespace exec

kernel_ptr executable::compiled::make_kernel(const exec::item& i) const {
  const node_def& n = node(i);
  std::vector<tensor_type> in;
  if (i.what == exec::action::update) in.push_back(n.outputs[0]);
  for (std::uint32_t a = 0; a < i.ins; ++a) in.push_back(values[inputs[i.first_in + a]].declared);
  kernel_ptr k = i.device->make_kernel(n, in);
  if (!k) fail(errc::unimplemented, "[", n.op->name, "] has no kernel on ", to_string(*n.device));
  if (!i.dynamic) k->prepare(in, n.outputs);
  return k;
}

executable::executable(plan::part part, const task_resources& task) {
  auto c = std::make_unique<compiled>();
  c->part = std::move(part);
  exec::compiler(*c, task).run();
  compiled_ = std::move(c);
}
executable::~executable() = default;
std::unique_ptr<executable::frame> executable::make_frame() const {
  return std::make_unique<frame>(*compiled_);
}
const plan::part& executable::source() const { return compiled_->part; }
std::span<const transfer> executable::sends() const { return compiled_->sends; }
std::span<const transfer> executable::receives() const { return compiled_->receives; }
std::span<const std::uint32_t> executable::feeds() const { return compiled_->feed_numbers; }
std::size_t executable::lanes() const { return compiled_->lanes.size(); }

}  // namespace deft
