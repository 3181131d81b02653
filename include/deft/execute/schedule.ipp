// SPDX-License-Identifier: Apache-2.0
// deft/execute/schedule.ipp: a part compiled into lanes.
#pragma once
#include <algorithm>
#include <deft/core/hash.hpp>
#include <deft/execute/lanes.hpp>
#include <deft/execute/memory_plan.hpp>
#include <deft/execute/schedule.hpp>
#include <deft/execute/segments.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/constant.hpp>
#include <deft/op/plan/feed.hpp>
#include <unordered_map>

namespace deft::ext {
namespace exec {
namespace {

/// Makes the tables of a part: values and items, then the lanes' order, then memory.
class compiler {
 public:
  /// `body`: the part is a function's. Its feeds come from the device where they are, and what it
  /// fetches stays there.
  compiler(executable::compiled& c, const plan::part& part, const task_resources& task,
           bool body = false)
      : c_(c), part_(part), task_(task), body_(body), planner_(part.graph) {}

  void run() {
    auto& nodes = part_.graph.nodes;
    c_.labels.reserve(nodes.size());
    c_.values.reserve(nodes.size());
    items_.reserve(nodes.size());
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      try {
        add(i);
      } catch (const error& e) {
        throw e.with_node(e.node().empty() ? nodes[i].name.str() : e.node(), nodes[i].location,
                          nodes[i].device ? to_string(*nodes[i].device) : std::string());
      }
    }
    for (auto e : part_.fetches) fetch(e);
    put_in_order();
    plan_memory(c_);
    plan_segments(c_);
    c_.may_park = c_.lanes.size() > 1 || !c_.queues.empty() || !c_.value_kernels.empty();
    c_.all_lanes = static_cast<std::uint32_t>(c_.lanes.size());
    for (auto& call : c_.calls)
      for (auto& f : call.functions) {
        c_.may_park |= f.code->may_park;
        f.first_lane = c_.all_lanes;
        c_.all_lanes += f.code->all_lanes;
      }
    c_.types.shrink_to_fit();
    c_.inputs.shrink_to_fit();
    c_.releases.shrink_to_fit();
  }

 private:
  /// Number of the node's device.
  std::uint16_t device_of(const node_def& n) {
    if (!c_.devices.empty() && c_.devices[last_device_]->info().name == n.device)
      return last_device_;
    for (const auto& d : task_.devices)
      if (d->info().name == n.device) return last_device_ = number_of(*d);
    fail(errc::invalid_argument, "[", written_op(n), "] there is no device \"",
         n.device ? to_string(*n.device) : "", "\" on this task");
  }
  std::uint16_t number_of(device_runtime& d) {
    const auto at = std::ranges::find(c_.devices, &d);
    const auto number = static_cast<std::uint16_t>(at - c_.devices.begin());
    if (at != c_.devices.end()) return number;
    c_.devices.push_back(&d);
    if (d.asynchronous()) c_.queues.push_back(&d);
    return number;
  }
  std::uint16_t space_of(device_runtime& d) {
    for (std::uint16_t s = 0; s < c_.spaces.size(); ++s)
      if (&c_.spaces[s].device->space() == &d.space()) return s;
    c_.spaces.push_back({&d});
    return static_cast<std::uint16_t>(c_.spaces.size() - 1);
  }
  std::uint32_t type_of(const tensor_type& t) {
    auto [at, fresh] = types_.try_emplace(t, static_cast<std::uint32_t>(c_.types.size()));
    if (fresh) c_.types.push_back(t);
    return at->second;
  }
  const tensor_type& declared(std::uint32_t value) const { return c_.types[c_.values[value].type]; }

  void add(std::uint32_t number) {
    const node_def& n = part_.graph.nodes[number];
    c_.labels.push_back({n.op, n.name, n.location, n.device});
    const std::uint16_t on = device_of(n);
    device_runtime& device = *c_.devices[on];
    const auto first = static_cast<std::uint32_t>(c_.values.size());
    first_value_.push_back(first);
    for (std::uint32_t o = 0; o < n.outputs.size(); ++o) {
      value_info v;
      v.type = type_of(n.outputs[o]);
      v.node = number;
      v.root = first + o;
      v.space = space_of(device);
      v.device = on;
      if (!n.outputs[o].shape.is_static()) v.shape = c_.shapes++;
      c_.values.push_back(v);
    }
    if (threads_ > 1) guess_types(n, first);
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
    i.device = on;
    i.on_host = device.space().on_host();
    i.first_out = first;
    i.outs = static_cast<std::uint32_t>(n.outputs.size());
    i.first_in = static_cast<std::uint32_t>(c_.inputs.size());
    i.ins = static_cast<std::uint32_t>(n.inputs.size());
    for (auto e : n.inputs) {
      const std::uint32_t v = first_value_[e.node] + e.port;
      if (n.op->role != op_role::copy && c_.values[v].space != space_of(device))
        fail(errc::invalid_argument, "[", written_op(n), "] its input \"",
             part_.graph.nodes[e.node].name, "\" is not in the memory of its device");
      c_.inputs.push_back(v);
      ++c_.values[v].uses;
      i.dynamic = i.dynamic || c_.values[v].shape != none;
    }
    for (std::uint32_t o = 0; o < i.outs; ++o)
      i.dynamic = i.dynamic || c_.values[first + o].shape != none;
    lane_choice lane = classify(n, i);
    if (has_computation(i)) {
      i.number = computation_of(n, i);
      // With one thread lanes do not depend on costs.
      if (const kernel_ptr& k = kernels_[i.number]; k && threads_ > 1) lane.cost = cost_of(*k, i);
    }
    c_.most_ins = std::max(c_.most_ins, i.ins);
    c_.most_outs = std::max(c_.most_outs, i.outs);
    planner_.add(number, static_cast<std::uint32_t>(items_.size()), lane);
    items_.push_back(i);
  }

  /// Assumes typical values for extents known only at run time.
  const tensor_type& guessed(std::uint32_t value) const {
    auto at = guessed_.find(value);
    return at == guessed_.end() ? declared(value) : at->second;
  }
  void guess_types(const node_def& n, std::uint32_t first) {
    constexpr std::int64_t usual = 64;
    if (std::ranges::all_of(n.outputs, [](auto& t) { return t.shape.is_static(); })) return;
    std::vector<tensor_type> in, out;
    for (auto e : n.inputs) in.push_back(guessed(first_value_[e.node] + e.port));
    try {
      infer_types(*n.op, {in, n.attributes}, out);
    } catch (const error&) {  // they contradict each other: so much for the guess
      out.assign(n.outputs.begin(), n.outputs.end());
    }
    for (std::uint32_t o = 0; o < out.size(); ++o) {
      std::ranges::replace(out[o].shape, dyn, usual);
      guessed_[first + o] = out[o];
    }
  }
  double cost_of(kernel& k, const item& i) const {
    if (!i.dynamic) return k.cost();
    std::vector<tensor_type> in, out;
    for (std::uint32_t o = 0; o < i.outs; ++o) out.push_back(guessed(i.first_out + o));
    if (i.what == action::update) in = out;
    for (std::uint32_t a = 0; a < i.ins; ++a) in.push_back(guessed(input(i, a)));
    try {
      k.prepare(in, out);
      return k.cost();
    } catch (const error&) {
      return 0;
    }
  }

  static bool has_computation(const item& i) {
    return i.what == action::run || i.what == action::update ||
           (i.what == action::alias && i.dynamic);
  }
  /// Number of the item's computation, shared or new.
  std::uint32_t computation_of(const node_def& n, const item& i) {
    computation made;
    if (i.what == action::update)
      for (const auto& t : n.outputs) made.in.push_back(type_of(t));
    for (std::uint32_t a = 0; a < i.ins; ++a) made.in.push_back(c_.values[input(i, a)].type);
    const bool shared = i.what == action::run && !i.dynamic && !n.op->is(op_traits::stateful);
    std::uint64_t h = mix(reinterpret_cast<std::uintptr_t>(n.op), i.device);
    if (shared) {
      for (auto t : made.in) h = mix(h, t);
      for (std::uint32_t o = 0; o < i.outs; ++o) h = mix(h, c_.values[i.first_out + o].type);
      if (!n.attributes.empty()) h = mix(h, hash_attributes(n.attributes));
      auto [at, end] = alike_.equal_range(h);
      for (; at != end; ++at) {
        const computation& c = computations_[at->second];
        if (c.node.op == n.op && c.node.device == n.device && c.in == made.in &&
            std::ranges::equal(c.node.outputs, n.outputs) &&
            same_attributes(c.node.attributes, n.attributes))
          return at->second;
      }
    }
    const auto number = static_cast<std::uint32_t>(computations_.size());
    if (shared) alike_.emplace(h, number);
    made.node.op = n.op;
    made.node.attributes = n.attributes;
    made.node.outputs = n.outputs;
    made.node.device = n.device;
    made.item = static_cast<std::uint32_t>(items_.size());
    kernels_.push_back(i.on_host ? c_.make_kernel(made) : nullptr);
    computations_.push_back(std::move(made));
    return number;
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
    if (!device.space().on_host() && !body_) {
      v.where = storage::buffer;
      if (device.asynchronous()) v.event = c_.events++;
    }
  }

  std::uint32_t input(const item& i, std::uint32_t k) const { return c_.inputs[i.first_in + k]; }
  device_runtime& device_of_input(const item& i) const { return c_.device(c_.values[input(i, 0)]); }

  lane_choice classify(const node_def& n, item& i) {
    lane_choice lane{.device = i.on_host ? none : space_of(c_.device(i)),
                     .quick = !i.on_host,
                     .asynchronous = c_.device(i).asynchronous()};
    lane.waits = is(n, op_traits::waits);
    if (n.op->role == op_role::call) {
      add_call(n, i, lane);
      return lane;
    }
    if (const kernel_entry* k = c_.device(i).find_kernel(n.op->name); k && k->make_value) {
      i.what = action::run_value_kernel;
      i.number = static_cast<std::uint32_t>(c_.value_kernels.size());
      c_.value_kernels.push_back(k->make_value(
          {n, *task_.store, c_.sends, c_.receives, task_.session, task_.master, task_.devices}));
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
        i.variable = static_cast<std::uint32_t>(c_.variables.size());
        for (const auto& r : n.op->resources(n.attributes)) {
          c_.variables.push_back(find_variable(*task_.store, r.key, r.holds));
          c_.variable_types.push_back(type_of(r.holds));
          i.keeps_extents = !r.extents_of.empty();
          i.only_first = r.only_first;
          const std::lock_guard lock(c_.variables.back()->guard);
          c_.generations.push_back(c_.variables.back()->generation);
        }
        if (c_.variables.size() - i.variable != i.outs)
          fail(errc::invalid_argument, "[", n.op->name, "] ", i.outs, " outputs for ",
               c_.variables.size() - i.variable, " variables");
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

  void add_call(const node_def& n, item& i, lane_choice& lane) {
    const auto make = n.op->functions ? n.op->functions->make_call : nullptr;
    if (!make)
      fail(errc::unimplemented, "[", n.op->name,
           "] cannot be called in this program: a file that uses it must include deft/deft.hpp");
    i.what = action::call;
    i.number = static_cast<std::uint32_t>(c_.calls.size());
    for (std::uint32_t a = 0; a < i.ins; ++a) keep(input(i, a));
    call_info made{make(n), {}};
    for (const attr_value& a : n.attributes) {
      const auto* attribute = std::get_if<function_ref>(&a);
      if (!attribute || !*attribute) continue;
      const function_def& f = **attribute;
      plan::part part;
      part.task = part_.task;
      part.graph = f.body;
      part.fetches = f.results;
      auto code = std::make_unique<executable::compiled>();
      code->store = task_.store;
      compiler(*code, part, task_, true).run();
      if (!code->sends.empty() || !code->receives.empty())
        fail(errc::unimplemented, "[function] \"", f.name, "\" exchanges values with other tasks");
      lane.alone = lane.alone || code->may_park;
      made.functions.push_back({*attribute, std::move(code)});
    }
    // It waits for what its functions do on a device.
    lane.device = none;
    lane.quick = lane.asynchronous = false;
    c_.calls.push_back(std::move(made));
  }

  void classify_copy(const node_def& n, item& i, lane_choice& lane) {
    device_runtime& from = device_of_input(i);
    i.what = action::copy;
    keep(input(i, 0));
    lane.follows = n.inputs[0].node;
    if (!from.space().on_host()) lane.device = space_of(from), lane.quick = true;
    if (from.space().on_host() && i.on_host) return;  // the same elements
    value_info& v = c_.values[i.first_out];
    if (from.asynchronous() || c_.device(i).asynchronous()) v.event = c_.events++;
    v.where = storage::buffer;
  }

  void fetch(edge_def e) {
    const std::uint32_t v = e.port == run_only ? none : first_value_[e.node] + e.port;
    c_.fetch_values.push_back(v);
    if (v == none) return;
    keep(v);
    device_runtime& device = c_.device(c_.values[v]);
    if (device.space().on_host() || body_) return;
    item i;
    i.what = action::fetch;
    i.node = e.node;
    i.device = c_.values[v].device;
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
    c_.signals = plan.signals;
    std::size_t items = 0;
    for (const auto& lane : plan.lanes) items += lane.entries.size();
    c_.items.reserve(items);
    for (const auto& lane : plan.lanes) {
      lane_info l;
      std::unordered_map<std::uint32_t, std::uint32_t> mine;  // computations of this lane
      l.first = static_cast<std::uint32_t>(c_.items.size());
      l.quick = lane.quick;
      l.parallel = lane.parallel;
      c_.parallel |= lane.parallel;
      for (const auto& entry : lane.entries) {
        if (entry.what == lane_entry::item) {
          c_.items.push_back(items_[entry.number]);
          item& i = c_.items.back();
          for (std::uint32_t a = 0; a < i.ins; ++a)
            i.input_in_flight =
                i.input_in_flight || c_.values[c_.values[input(i, a)].root].event != none;
          if (has_computation(i)) i.number = place_computation(i.number, mine);
          continue;
        }
        item i;
        i.what = entry.what == lane_entry::signal ? action::signal
                 : entry.what == lane_entry::wait ? action::wait
                                                  : action::drain;
        if (i.what == action::drain)
          i.device = items_[entry.number].device, i.node = items_[entry.number].node;
        else
          i.number = entry.number;
        c_.items.push_back(i);
      }
      l.end = static_cast<std::uint32_t>(c_.items.size());
      c_.lanes.push_back(l);
    }
  }

  /// Lanes run at the same time, and a kernel does not: each lane has its own.
  std::uint32_t place_computation(std::uint32_t number,
                                  std::unordered_map<std::uint32_t, std::uint32_t>& mine) {
    auto [at, fresh] = mine.try_emplace(number, static_cast<std::uint32_t>(c_.computations.size()));
    if (!fresh) return at->second;
    c_.computations.push_back(computations_[number]);
    c_.computations.back().item = static_cast<std::uint32_t>(c_.items.size() - 1);
    c_.kernels.push_back(std::move(kernels_[number]));
    return at->second;
  }

  struct hash_type {
    std::size_t operator()(const tensor_type& t) const {
      std::uint64_t h = static_cast<std::uint64_t>(t.type);
      for (auto e : t.shape) h = mix(h, static_cast<std::uint64_t>(e));
      return h;
    }
  };

  executable::compiled& c_;
  const plan::part& part_;
  const task_resources& task_;
  const bool body_;
  lane_planner planner_;
  std::uint16_t last_device_ = 0;
  std::vector<std::uint32_t> first_value_;                  ///< of each node
  std::unordered_map<std::uint32_t, tensor_type> guessed_;  ///< of values not known before
  std::vector<item> items_;
  std::vector<computation> computations_;
  std::vector<kernel_ptr> kernels_;  ///< of computations, if they were made
  std::unordered_multimap<std::uint64_t, std::uint32_t> alike_;  ///< computations, by what they are
  std::unordered_map<tensor_type, std::uint32_t, hash_type> types_;
  const int threads_ = intra_op_threads();
};

}  // namespace
}  // namespace exec

kernel_ptr executable::compiled::make_kernel(const exec::computation& c) const {
  const node_def& n = c.node;
  if (n.op->role == op_role::alias) return nullptr;
  std::vector<tensor_type> in;
  bool known = true;
  for (auto t : c.in) in.push_back(types[t]), known = known && types[t].shape.is_static();
  for (const auto& t : n.outputs) known = known && t.shape.is_static();
  const auto device =
      std::ranges::find(devices, n.device, [](const device_runtime* d) { return d->info().name; });
  kernel_ptr k = (*device)->supports(n, in) ? (*device)->make_kernel(n, in) : nullptr;
  if (!k)
    fail(errc::unimplemented, "[", written_op(n), "] has no kernel for ",
         dispatch_type(*n.op, in, n.outputs), " on ", to_string(*n.device));
  if (known) k->prepare(in, n.outputs);
  return k;
}

executable::executable(plan::part part, const task_resources& task) {
  auto c = std::make_unique<compiled>();
  c->store = task.store;
  exec::compiler(*c, part, task).run();
  compiled_ = std::move(c);
}
executable::~executable() = default;
std::unique_ptr<executable::frame> executable::make_frame() const {
  return std::make_unique<frame>(*compiled_);
}
std::span<const transfer> executable::sends() const { return compiled_->sends; }
std::span<const transfer> executable::receives() const { return compiled_->receives; }
std::span<const std::uint32_t> executable::feeds() const { return compiled_->feed_numbers; }
std::size_t executable::fetches() const { return compiled_->fetch_values.size(); }
std::size_t executable::lanes() const { return compiled_->lanes.size(); }

}  // namespace deft::ext
