// SPDX-License-Identifier: Apache-2.0
// deft/execute/schedule.ipp: a part compiled into its schedule.
#pragma once
#include <charconv>
#include <deft/execute/schedule.hpp>
#include <deft/op/catalog.hpp>
#include <deft/plan/variables.hpp>
#include <unordered_map>

namespace deft {
namespace exec {
namespace {

/// Makes the tables of a part.
class compiler {
 public:
  compiler(executable::compiled& c, const task_resources& task) : c_(c), task_(task) {}

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
    for (auto e : c_.part.fetches) {
      c_.fetch_values.push_back(e.port == run_only ? none : c_.first_value[e.node] + e.port);
      if (e.port != run_only) keep(c_.fetch_values.back());
    }
    find_last_uses();
    assign_slots();
  }

 private:
  device_runtime& device_of(const node_def& n) const {
    for (const auto& d : task_.devices)
      if (d->info().name == n.device) return *d;
    fail(errc::invalid_argument, "[", n.op->name, "] there is no device \"",
         n.device ? to_string(*n.device) : "", "\" on this task");
  }

  void add(std::uint32_t number) {
    const node_def& n = c_.part.graph.nodes[number];
    device_runtime& device = device_of(n);
    std::uint32_t first = static_cast<std::uint32_t>(c_.values.size());
    c_.first_value.push_back(first);
    for (std::uint32_t o = 0; o < n.outputs.size(); ++o) {
      value_info v;
      v.declared = n.outputs[o];
      v.node = number;
      v.root = first + o;
      v.device = &device;
      c_.values.push_back(v);
    }
    if (n.op == &record_of<op::constant>) return c_.constants.push_back(number);
    if (n.op == &record_of<op::feed>) {
      c_.feed_values.push_back(first);
      c_.feed_numbers.push_back(
          static_cast<std::uint32_t>(std::get<std::int64_t>(n.attributes[0])));
      return;
    }
    if (n.op->is(op_traits::no_value) && n.op != &record_of<op::send>) return;

    item i;
    i.node = number;
    i.device = &device;
    i.on_host = device.space().on_host();
    i.first_out = first;
    i.outs = static_cast<std::uint32_t>(n.outputs.size());
    i.first_in = static_cast<std::uint32_t>(c_.inputs.size());
    i.ins = static_cast<std::uint32_t>(n.inputs.size());
    for (auto e : n.inputs) {
      std::uint32_t v = c_.first_value[e.node] + e.port;
      c_.inputs.push_back(v);
      ++c_.values[v].uses;
      i.dynamic |= !c_.values[v].declared.shape.is_static();
    }
    for (const auto& o : n.outputs) i.dynamic |= !o.shape.is_static();
    classify(n, i);
    c_.items.push_back(i);
  }

  void classify(const node_def& n, item& i) {
    auto is = [&]<class Op>(const Op*) { return n.op == &record_of<Op>; };
    auto input = [&](std::uint32_t k) { return c_.inputs[i.first_in + k]; };
    if (auto v = plan::variable_of(n)) {
      tensor_type type{decode_shape(n.attributes[3]),
                       static_cast<dtype>(std::get<std::int64_t>(n.attributes[2]))};
      c_.variables.push_back(task_.variables->get(v->first, v->second, type));
      i.variable = c_.variables.back().get();
      i.what = !plan::is_update(n)              ? action::read
               : n.op == &record_of<op::assign> ? action::assign
                                                : action::update;
      if (i.what == action::assign) keep(input(0));
    } else if (is(static_cast<op::identity*>(nullptr)) || is(static_cast<op::reshape*>(nullptr)) ||
               is(static_cast<op::stop_gradient*>(nullptr))) {
      i.what = action::alias;
      c_.values[i.first_out].root = c_.values[input(0)].root;
    } else if (is(static_cast<op::placeholder*>(nullptr))) {
      i.what = action::refuse;
    } else if (is(static_cast<op::copy*>(nullptr))) {
      i.what = action::copy;
      keep(input(0));
    } else if (is(static_cast<op::send*>(nullptr)) || is(static_cast<op::recv*>(nullptr))) {
      bool sends = is(static_cast<op::send*>(nullptr));
      i.what = sends ? action::send : action::receive;
      auto& list = sends ? c_.sends : c_.receives;
      i.number = static_cast<std::uint32_t>(list.size());
      list.push_back({key_of(std::get<std::string>(n.attributes[0])),
                      intern(parse_device(std::get<std::string>(n.attributes[1])))});
      if (sends) keep(input(0));
    }
  }

  static dims decode_shape(const attr_value& a) {
    return dims(std::span<const std::int64_t>(std::get<integers>(a)));
  }
  static std::uint64_t key_of(const std::string& text) {
    std::uint64_t key = 0;
    auto r = std::from_chars(text.data(), text.data() + text.size(), key);
    if (r.ec != std::errc() || r.ptr != text.data() + text.size())
      fail(errc::invalid_argument, "the key \"", text, "\" is no number");
    return key;
  }

  void keep(std::uint32_t value) {
    c_.values[c_.values[value].root].escapes = true;
    ++c_.values[value].uses;
  }

  void find_last_uses() {
    // The memory of a value is used as long as any value that shares it is.
    for (std::uint32_t k = 0; k < c_.items.size(); ++k) {
      const item& i = c_.items[k];
      for (std::uint32_t a = 0; a < i.ins; ++a) root(c_.inputs[i.first_in + a]).last_use = k;
      for (std::uint32_t o = 0; o < i.outs; ++o) root(i.first_out + o).last_use = k;
    }
    for (auto v : c_.fetch_values)
      if (v != none) root(v).last_use = none;
  }
  value_info& root(std::uint32_t v) { return c_.values[c_.values[v].root]; }

  /// Gives memory to what kernels write: values whose lives do not overlap share it.
  void assign_slots() {
    std::vector<std::vector<std::uint32_t>> dying(c_.items.size());
    for (std::uint32_t v = 0; v < c_.values.size(); ++v)
      if (c_.values[v].root == v && c_.values[v].last_use != none && !c_.items.empty())
        dying[c_.values[v].last_use].push_back(v);
    std::vector<std::uint32_t> free;
    for (std::uint32_t k = 0; k < c_.items.size(); ++k) {
      item& i = c_.items[k];
      if (i.what == action::run)
        for (std::uint32_t o = 0; o < i.outs; ++o) give_slot(c_.values[i.first_out + o], free);
      i.first_release = static_cast<std::uint32_t>(c_.releases.size());
      for (auto v : dying[k]) {
        if (c_.values[v].slot != none) {
          if (c_.slots[c_.values[v].slot].shared) free.push_back(c_.values[v].slot);
        } else if (!is_constant(v)) {
          release_all_of(v);
        }
      }
      i.releases = static_cast<std::uint32_t>(c_.releases.size()) - i.first_release;
    }
    for (std::uint32_t v = 0; v < c_.values.size(); ++v)
      if (root(v).slot == none && !is_constant(c_.values[v].root)) c_.holders.push_back(v);
  }
  bool is_constant(std::uint32_t v) const {
    return c_.part.graph.nodes[c_.values[v].node].op == &record_of<op::constant>;
  }
  void release_all_of(std::uint32_t r) {
    for (auto v : sharers(r)) c_.releases.push_back(v);
  }
  const std::vector<std::uint32_t>& sharers(std::uint32_t r) {
    if (sharers_.empty())
      for (std::uint32_t v = 0; v < c_.values.size(); ++v) sharers_[c_.values[v].root].push_back(v);
    return sharers_[r];
  }

  void give_slot(value_info& v, std::vector<std::uint32_t>& free) {
    if (!v.escapes)
      for (std::size_t f = free.size(); f-- > 0;) {
        slot_info& s = c_.slots[free[f]];
        if (s.device != v.device || !(s.type == v.declared)) continue;
        v.slot = free[f];
        free.erase(free.begin() + static_cast<std::ptrdiff_t>(f));
        return;
      }
    v.slot = static_cast<std::uint32_t>(c_.slots.size());
    c_.slots.push_back({v.device, v.declared, !v.escapes});
  }

  executable::compiled& c_;
  const task_resources& task_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> sharers_;
};

}  // namespace
}  // namespace exec

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
std::span<const crossing> executable::sends() const { return compiled_->sends; }
std::span<const crossing> executable::receives() const { return compiled_->receives; }
std::span<const std::uint32_t> executable::feeds() const { return compiled_->feed_numbers; }

}  // namespace deft
