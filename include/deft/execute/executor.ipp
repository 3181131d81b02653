// SPDX-License-Identifier: Apache-2.0
// deft/execute/executor.ipp: the loop over a schedule.
#pragma once
#include <algorithm>
#include <deft/execute/schedule.hpp>
#include <deft/op/catalog.hpp>

namespace deft {
namespace {

std::size_t bytes_of(const tensor_type& t) {
  return static_cast<std::size_t>(t.shape.elements()) * size_of_dtype(t.type);
}

}  // namespace

/// What changes during a run.
class executable::frame::impl {
 public:
  explicit impl(const compiled& c)
      : c_(c),
        values_(c.values.size()),
        slots_(c.slots.size()),
        in_(c.inputs.size()),
        out_(c.values.size()),
        prepared_(c.items.size()),
        kernels_(c.items.size()),
        fetched_(c.fetch_values.size()) {
    for (std::size_t v = 0; v < values_.size(); ++v) values_[v].type = c.values[v].declared;
    for (auto n : c.constants) set_constant(n);
    std::vector<tensor_type> in;
    for (std::size_t k = 0; k < c.items.size(); ++k) {
      const auto& i = c.items[k];
      if (i.what != exec::action::run && i.what != exec::action::update) continue;
      const node_def& n = c.node(i);
      in.clear();
      if (i.what == exec::action::update) in.push_back(i.variable->type);
      for (std::uint32_t a = 0; a < i.ins; ++a)
        in.push_back(c.values[c.inputs[i.first_in + a]].declared);
      try {
        kernels_[k] = i.device->make_kernel(n, in);
        if (!kernels_[k])
          fail(errc::unimplemented, "[", n.op->name, "] has no kernel on ", to_string(*n.device));
        if (!i.dynamic) prepare(k);
      } catch (const error& e) {
        pc_ = k;
        rethrow(e);
      }
    }
  }

  bool start(std::span<const feed_ref> feeds, const step_info& step, step_io* io,
             const std::atomic<bool>* cancelled) {
    release();
    step_ = step;
    io_ = io;
    cancelled_ = cancelled;
    pc_ = 0;
    dirty_ = force_;
    force_ = true;  // until the run has ended well
    for (std::size_t f = 0; f < c_.feed_values.size(); ++f) set_feed(c_.feed_values[f], feeds[f]);
    return resume();
  }

  bool resume() {
    try {
      for (; pc_ < c_.items.size(); ++pc_) {
        const exec::item& i = c_.items[pc_];
        if (i.what == exec::action::run)
          run_kernel(i);
        else if (!run_other(i))
          return false;
        for (std::uint32_t r = 0; r < i.releases; ++r)
          values_[c_.releases[i.first_release + r]].keep.reset();
        if (cancelled_ && cancelled_->load(std::memory_order_relaxed))
          throw error(errc::cancelled, "the step was cancelled");
      }
      for (auto* d : synchronized_) d->synchronize();
    } catch (const error& e) {
      rethrow(e);
    } catch (const std::bad_alloc&) {
      rethrow(error(errc::resource_exhausted, "out of memory"));
    }
    force_ = false;
    return true;
  }

  const any_array& peek(std::size_t i) {
    any_array& f = fetched_[i];
    std::uint32_t v = c_.fetch_values[i];
    if (!f.valid() && v != exec::none) {
      f = as_array(v);
      device_runtime& d = *c_.values[v].device;
      if (!d.space().on_host()) {
        any_array host(f.type(), f.shape());
        d.copy_out(host.mutable_raw(), f.raw(), f.bytes());
        f = std::move(host);
      } else if (!f.storage() || f.storage().is_borrowed()) {
        f = f.clone();
      }
    }
    return f;
  }
  any_array take(std::size_t i) {
    peek(i);
    return std::move(fetched_[i]);
  }

  void release() {
    for (auto& f : fetched_)
      if (f.valid()) f = any_array();
    for (auto v : c_.holders) values_[v].keep.reset();
    for (std::size_t s = 0; s < slots_.size(); ++s)
      if (!c_.slots[s].shared && slots_[s] && !slots_[s].unique()) slots_[s].reset();
  }

 private:
  struct value {
    void* data = nullptr;
    buffer keep;  ///< empty where the elements are in a slot
    tensor_type type;
  };

  void set_constant(std::uint32_t n) {
    const auto& a = std::get<any_array>(c_.part.graph.nodes[n].attributes[0]);
    value& v = values_[c_.first_value[n]];
    device_runtime& d = *c_.values[c_.first_value[n]].device;
    v.keep = on_device(a.storage(), a.raw(), a.bytes(), d);
    v.data = v.keep.data();
  }

  static buffer on_device(const buffer& host, const void* data, std::size_t bytes,
                          device_runtime& d) {
    if (d.space().on_host()) return host;
    buffer b(d.space().allocate(bytes));
    d.copy_in(b.data(), data, bytes);
    return b;
  }

  void set_type(value& v, const dims& shape) {
    if (v.type.shape == shape) return;
    v.type.shape = shape;
    dirty_ = true;
  }

  void set_feed(std::uint32_t number, const feed_ref& f) {
    value& v = values_[number];
    const exec::value_info& info = c_.values[number];
    if (f.type != info.declared.type || !fits(info.declared.shape, f.shape)) {
      const node_def& n = c_.part.graph.nodes[info.node];
      throw error(errc::invalid_argument,
                  str("[feed] ", f.type, f.shape, " is fed where ", info.declared, " is expected"),
                  n.name, n.place);
    }
    set_type(v, f.shape);
    std::size_t bytes = bytes_of(v.type);
    v.keep = on_device(f.keep, f.data, bytes, *info.device);
    v.data = v.keep ? v.keep.data() : const_cast<void*>(f.data);
  }

  /// Shapes of item `k`, from those of its inputs.
  void prepare(std::size_t k) {
    const exec::item& i = c_.items[k];
    const node_def& n = c_.node(i);
    in_types_.clear();
    if (i.what == exec::action::update) in_types_.push_back(values_[c_.inputs[i.first_in]].type);
    for (std::uint32_t a = 0; a < i.ins; ++a)
      in_types_.push_back(values_[c_.inputs[i.first_in + a]].type);
    if (i.dynamic) {
      if (prepared_[k] == in_types_ && !in_types_.empty()) return;
      prepared_[k].clear();  // until all of this has gone well
      std::span<const tensor_type> seen = in_types_;
      infer_types(*n.op, {i.what == exec::action::update ? seen.subspan(1) : seen, n.attributes},
                  out_types_);
      for (std::uint32_t o = 0; o < i.outs; ++o) {
        if (!out_types_[o].shape.is_static())
          fail(errc::internal, "[", n.op->name,
               "] cannot tell the shape of its result: ", out_types_[o]);
        if (!fits(n.outputs[o].shape, out_types_[o].shape))
          fail(errc::invalid_argument, "[", n.op->name, "] the result is ", out_types_[o].shape,
               " where ", n.outputs[o].shape, " was declared");
        values_[i.first_out + o].type = out_types_[o];
      }
    } else {
      out_types_ = n.outputs;
    }
    if (kernels_[k]) kernels_[k]->prepare(in_types_, out_types_);
    for (std::uint32_t o = 0; o < i.outs && i.what == exec::action::run; ++o)
      fit_slot(i.first_out + o);
    prepared_[k] = in_types_;
  }

  void fit_slot(std::uint32_t v) {
    const exec::value_info& info = c_.values[v];
    buffer& b = slots_[info.slot];
    std::size_t bytes = std::max<std::size_t>(bytes_of(values_[v].type), 1);
    if (b.capacity() < bytes) b = buffer(info.device->space().allocate(bytes));
  }

  void run_kernel(const exec::item& i) {
    if (i.dynamic && dirty_) prepare(pc_);
    for (std::uint32_t a = i.first_in; a < i.first_in + i.ins; ++a)
      in_[a] = values_[c_.inputs[a]].data;
    for (std::uint32_t o = i.first_out; o < i.first_out + i.outs; ++o) {
      const exec::value_info& info = c_.values[o];
      if (info.escapes)
        renew_slot(o);
      else if (!info.uses && kernels_[pc_]->optional_output(static_cast<int>(o - i.first_out))) {
        out_[o] = nullptr;
        continue;
      }
      out_[o] = values_[o].data = slots_[info.slot].data();
    }
    kernel_call call{in_.data() + i.first_in, out_.data() + i.first_out, &step_};
    if (i.on_host)
      kernels_[pc_]->run(call);
    else
      launch(i, call);
  }
  /// What went out in an earlier run is written no more.
  void renew_slot(std::uint32_t v) {
    const exec::value_info& info = c_.values[v];
    buffer& b = slots_[info.slot];
    if (!b.unique())
      b = buffer(
          info.device->space().allocate(std::max<std::size_t>(bytes_of(values_[v].type), 1)));
  }
  void launch(const exec::item& i, const kernel_call& call) {
    if (!std::ranges::count(synchronized_, i.device)) synchronized_.push_back(i.device);
    i.device->launch(*kernels_[pc_], call);
  }

  /// The value with whatever owns its elements; without an owner where nobody does.
  any_array as_array(std::uint32_t v) const {
    const value& x = values_[v];
    const exec::value_info& r = c_.values[c_.values[v].root];
    if (r.slot != exec::none) return any_array(x.type.type, x.type.shape, slots_[r.slot]);
    if (x.keep) return any_array(x.type.type, x.type.shape, x.keep);
    return any_array::view(x.type.type, x.type.shape, x.data);
  }

  bool run_other(const exec::item& i) {
    std::uint32_t in = i.ins ? c_.inputs[i.first_in] : exec::none;
    switch (i.what) {
      case exec::action::read:
        read(i);
        return true;
      case exec::action::assign:
        assign(i, in);
        return true;
      case exec::action::update:
        update(i, in);
        return true;
      case exec::action::alias: {
        if (i.dynamic && dirty_) prepare(pc_);
        value& to = values_[i.first_out];
        to.data = values_[in].data;
        to.keep = values_[in].keep;
        return true;
      }
      case exec::action::copy: {
        any_array moved = copy_to_device(as_array(in), *c_.values[in].device, *i.device);
        hold(values_[i.first_out], std::move(moved));
        return true;
      }
      case exec::action::send: {
        any_array out = as_array(in);
        if (out.storage().is_borrowed()) out = out.clone();
        io_->send(i.number, out);
        return true;
      }
      case exec::action::receive: {
        any_array arrived;
        if (!io_->receive(i.number, arrived)) return false;
        const tensor_type& declared = c_.values[i.first_out].declared;
        if (arrived.type() != declared.type || !fits(declared.shape, arrived.shape()))
          fail(errc::invalid_argument, "[recv] ", arrived.type(), arrived.shape(), " came where ",
               declared, " is expected");
        hold(values_[i.first_out], std::move(arrived));
        return true;
      }
      case exec::action::refuse:
        fail(errc::invalid_argument, "[placeholder] a value is needed, and none was fed");
      case exec::action::run:
        break;
    }
    return true;
  }

  void hold(value& v, any_array a) {
    set_type(v, a.shape());
    v.keep = std::move(a).take_storage();
    v.data = v.keep.data();
  }

  void need_value(const variable_slot& v) const {
    if (!v.value.valid())
      fail(errc::failed_precondition, "variable \"", v.name, "\" is not initialized");
    const device_name* here = c_.node(c_.items[pc_]).device;
    if (v.device != here && v.value.storage().home() != &c_.items[pc_].device->space())
      fail(errc::failed_precondition, "variable \"", v.name, "\" lives on ", to_string(*v.device),
           ", and cannot be used on ", to_string(*here));
  }

  void read(const exec::item& i) {
    variable_slot& variable = *i.variable;
    std::lock_guard lock(variable.guard);
    need_value(variable);
    hold(values_[i.first_out], variable.value);
  }

  void assign(const exec::item& i, std::uint32_t in) {
    variable_slot& variable = *i.variable;
    any_array value = as_array(in);
    if (!fits(variable.type.shape, value.shape()))
      fail(errc::invalid_argument, "[assign] ", value.shape(), " is assigned to ", variable.type);
    // Only elements that the frame itself made can be given to the variable.
    if (c_.values[c_.values[in].root].slot == exec::none) value = copied(value, *i.device);
    std::lock_guard lock(variable.guard);
    variable.value = value;
    variable.device = i.device->info().name;
    hold(values_[i.first_out], std::move(value));
  }
  static any_array copied(const any_array& a, device_runtime& d) {
    if (d.space().on_host()) return a.clone();
    any_array host(a.type(), a.shape());
    d.copy_out(host.mutable_raw(), a.raw(), a.bytes());
    buffer b(d.space().allocate(a.bytes()));
    d.copy_in(b.data(), host.raw(), a.bytes());
    return any_array(a.type(), a.shape(), std::move(b));
  }

  void update(const exec::item& i, std::uint32_t in) {
    variable_slot& variable = *i.variable;
    std::lock_guard lock(variable.guard);
    need_value(variable);
    if (!(values_[in].type == tensor_type{variable.value.shape(), variable.value.type()}))
      fail(errc::invalid_argument, "[", c_.node(i).op->name, "] ", values_[in].type,
           " updates a variable of ", variable.value.type(), variable.value.shape());
    if (i.dynamic && dirty_) prepare(pc_);
    const buffer& elements = variable.value.storage();
    const void* args[] = {elements.data(), values_[in].data};
    buffer fresh;
    if (!elements.unique())
      fresh =
          buffer(i.device->space().allocate(std::max<std::size_t>(bytes_of(values_[in].type), 1)));
    void* out[] = {fresh ? fresh.data() : elements.data()};
    kernel_call call{args, out, &step_};
    if (i.on_host)
      kernels_[pc_]->run(call);
    else
      launch(i, call), i.device->synchronize();
    if (fresh) variable.value = {variable.value.type(), variable.value.shape(), std::move(fresh)};
    if (c_.values[i.first_out].uses) hold(values_[i.first_out], variable.value);
  }

  [[noreturn]] void rethrow(const error& e) {
    if (pc_ >= c_.items.size() || !e.node().empty()) throw e;
    const node_def& n = c_.node(c_.items[pc_]);
    throw error(e.code(), e.message(), n.name, n.place, to_string(*n.device));
  }

  const compiled& c_;
  std::vector<value> values_;
  std::vector<buffer> slots_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<std::vector<tensor_type>> prepared_;
  std::vector<kernel_ptr> kernels_;
  std::vector<any_array> fetched_;
  std::vector<device_runtime*> synchronized_;
  std::vector<tensor_type> in_types_, out_types_;
  step_info step_;
  step_io* io_ = nullptr;
  const std::atomic<bool>* cancelled_ = nullptr;
  std::size_t pc_ = 0;
  bool dirty_ = false;  ///< a shape differs from the last run's
  bool force_ = true;   ///< the last run did not end: shapes may be half changed
};

executable::frame::frame(const compiled& c) : impl_(std::make_unique<impl>(c)) {}
executable::frame::~frame() = default;
bool executable::frame::start(std::span<const feed_ref> feeds, const step_info& step, step_io* io,
                              const std::atomic<bool>* cancelled) {
  return impl_->start(feeds, step, io, cancelled);
}
bool executable::frame::resume() { return impl_->resume(); }
const any_array& executable::frame::peek(std::size_t i) { return impl_->peek(i); }
any_array executable::frame::take(std::size_t i) { return impl_->take(i); }
void executable::frame::release() { impl_->release(); }

}  // namespace deft
