// SPDX-License-Identifier: Apache-2.0
// deft/execute/items.ipp: what the items of a lane do: kernels, state, copies between devices.
#pragma once
#include <deft/execute/frame_state.hpp>

namespace deft::ext::exec {

/// Nanoseconds of an item above which what was sent does not wait for it.
constexpr double long_item = 20'000;

void frame_state::prepare(const item& i, std::uint32_t in_lane) {
  const computation& what = c_.computations[i.number];
  const node_def& n = what.node;
  auto& in = lanes_[in_lane].in_types;
  auto& out = lanes_[in_lane].out_types;
  in.clear();
  const std::uint32_t variables = i.what == action::update ? i.outs : 0;
  for (std::uint32_t o = 0; o < variables; ++o) {
    const any_array& now = c_.variables[i.variable + o]->value;
    in.push_back({now.shape(), now.type()});
    if (in[o].shape != in[0].shape)
      fail(errc::invalid_argument, "[", written_op(n), "] variables \"",
           c_.variables[i.variable]->name, "\", ", in[0], ", and \"",
           c_.variables[i.variable + o]->name, "\", ", in[o],
           ", are to be updated together, and have different extents");
  }
  for (std::uint32_t a = 0; a < i.ins; ++a)
    in.push_back(values_.type_of(c_.inputs[i.first_in + a]));
  std::vector<tensor_type>& before = prepared_[i.number];
  if (before == in && !in.empty()) return fit_slots(i);
  before.clear();  // until all of this has gone well
  if (variables) values_.set_dirty(true);
  const std::span<const tensor_type> seen = in;
  infer_types(*n.op, {seen.subspan(variables), n.attributes, seen.first(variables)}, out);
  for (std::uint32_t o = 0; o < i.outs; ++o) {
    if (!out[o].shape.is_static())
      fail(errc::internal, "[", written_op(n), "] cannot tell the shape of its result: ", out[o]);
    if (!fits(n.outputs[o].shape, out[o].shape))
      fail(errc::invalid_argument, "[", written_op(n), "] the result has shape ", out[o].shape,
           ", but ", n.outputs[o].shape, " was declared");
    values_.infer_shape(i.first_out + o, out[o].shape);
  }
  if (const kernel_ptr& k = kernels_[i.number]) k->prepare(in, out);
  before = in;
  fit_slots(i);
}

void frame_state::fit_slots(const item& i) {
  if (i.what != action::run) return;
  for (std::uint32_t o = 0; o < i.outs; ++o) values_.fit_slot(i.first_out + o);
}

void frame_state::run_item(const item& i, std::uint32_t k, std::uint32_t l) {
  const std::uint32_t in = i.ins ? c_.inputs[i.first_in] : none;
  switch (i.what) {
    case action::run:
      return run_kernel(i, k, l);
    case action::read:
      return read(i, l);
    case action::assign:
      return assign(i, in, l);
    case action::update:
      return update(i, k, l);
    case action::alias: {
      if (i.dynamic && values_.dirty()) prepare(i, l);
      values_.share(i.first_out, in);
      return;
    }
    case action::copy:
      return copy(i, in, l);
    case action::fetch:
      return fetch(i, in, l);
    case action::refuse:
      fail(errc::invalid_argument, error_reason::not_fed,
           "[placeholder] a value is needed, and none was fed");
    default:
      fail(errc::internal, "an item that is not an operation's");
  }
}

void frame_state::run_kernel(const item& i, std::uint32_t k, std::uint32_t l) {
  if (i.dynamic && values_.dirty()) prepare(i, l);
  kernel& what = *kernels_[i.number];
  lane& me = lanes_[l];
  for (std::uint32_t a = 0; a < i.ins; ++a) me.in[a] = values_.address(c_.inputs[i.first_in + a]);
  for (std::uint32_t o = 0; o < i.outs; ++o) {
    const std::uint32_t v = i.first_out + o;
    const bool left_out = !c_.values[v].uses && what.optional_output(static_cast<int>(o));
    me.out[o] = left_out ? nullptr : values_.address_to_write(v);
  }
  kernel_call call{me.in.data(), me.out.data(), context_};
  // Before a long item the rendezvous is told every time.
  if (i.bindable && !bound_[k] && what.cost() <= long_item)
    bound_[k] = me.rows.add(what.bind(call));
  launch(i, k, l, what, call, i.ins, i.outs);
}

void frame_state::launch(const item& i, std::uint32_t k, std::uint32_t l, kernel& what,
                         kernel_call& call, std::uint32_t ins, std::uint32_t outs) {
  if (context_->exchange && what.cost() > long_item) context_->exchange->flush(false);
  segment_launches* const segment = lanes_[l].open;
  buffer scratch;
  if (const std::size_t bytes = what.scratch()) {
    if (!segment) scratch = c_.device(i).arenas().take(bytes);
    call.scratch = segment ? segment->scratch(bytes) : scratch.data();
  }
  if (i.on_host) {
    what.run(call);
  } else {
    wait_on_device(i);
    if (i.outs) call.draw_word = values_.block_on(c_.values[i.first_out].space);
    const launch_request r{what, call, ins, outs, k, i.what == action::update};
    if (segment)
      segment->add(r);
    else
      c_.device(i).launch(r, step_on(i));
  }
  // Whoever takes it next launches after this.
  if (scratch) c_.device(i).arenas().give(std::move(scratch));
}

void frame_state::wait_on_device(const item& i) {
  if (!i.input_in_flight) return;
  for (std::uint32_t a = 0; a < i.ins; ++a)
    if (const event_ptr& e = event_of(c_.inputs[i.first_in + a])) c_.device(i).wait(e);
}

/// Gives an item's value kernel what it asks for.
class frame_state::call_of final : public value_call {
 public:
  call_of(frame_state& f, const item& i, std::uint32_t lane) : f_(f), i_(i), lane_(lane) {}
  std::size_t inputs() const override { return i_.ins; }
  any_array input(std::size_t i) const override {
    any_array a = f_.values_.as_array(f_.c_.inputs[i_.first_in + i]);
    return a.storage().is_borrowed() ? a.clone() : a;
  }
  void output(std::size_t o, any_array a) override {
    const std::uint32_t v = i_.first_out + static_cast<std::uint32_t>(o);
    const tensor_type& declared = f_.c_.type(f_.c_.values[v]);
    if (a.type() != declared.type || !fits(declared.shape, a.shape()))
      fail(errc::invalid_argument, "[", f_.c_.label(i_).op->name, "] ", a.type(), a.shape(),
           " was received; expected ", declared);
    f_.values_.hold(v, std::move(a));
  }
  const step_context& step() const override { return *f_.context_; }
  waker make_waker() const override { return waker(f_.gate(lane_), f_.run_); }
  wait_list::ticket& ticket() override { return f_.value_kernel_runs_[i_.number].ticket; }
  std::any& state() override { return f_.value_kernel_runs_[i_.number].state; }

 private:
  frame_state& f_;
  const item& i_;
  std::uint32_t lane_;
};

bool frame_state::run_value_kernel(const item& i, std::uint32_t l) {
  gate(l)->listen();
  // What was to end the run before it listened did not wake it.
  check_stop();
  if (failed_.load()) throw error(errc::cancelled, "the step has failed");
  const value_kernel& what = *c_.value_kernels[i.number];
  if (context_->exchange && what.is_long()) context_->exchange->flush(false);
  observation seen(context_->observer, c_.label(i), l);
  call_of c(*this, i, l);
  if (!what.run(c)) return false;
  value_kernel_runs_[i.number].ticket.served();
  return true;
}

void frame_state::need_standing(const variable_slot& v, const item& i, std::uint32_t o) const {
  if (v.generation != c_.generations[i.variable + o])
    fail(errc::aborted, "variable \"", v.name,
         "\" was restored after this session began: make a new one");
}

namespace {
void fail_if_restoring(const variable_slot& v) {
  if (v.restoring) fail(errc::aborted, "variable \"", v.name, "\" is being restored");
}
}  // namespace

void frame_state::need_value(const variable_slot& v, const item& i, std::uint32_t o) const {
  fail_if_restoring(v);
  if (i.what == action::update) need_standing(v, i, o);
  if (!v.value.valid())
    fail(errc::failed_precondition, error_reason::uninitialized, "variable \"", v.name,
         "\" is not initialized");
  const tensor_type& declared = variable_of(i, o);
  if (v.value.type() != declared.type || !fits(declared.shape, v.value.shape()))
    fail(errc::failed_precondition, "variable \"", v.name, "\" is ", v.value.type(),
         v.value.shape(), " now, not ", declared);
  const placement here = c_.device(i).info().name;
  if (v.device != here && v.value.storage().home() != &c_.device(i).space())
    fail(errc::failed_precondition, "variable \"", v.name, "\" lives on ", to_string(*v.device),
         ", and cannot be used on ", to_string(*here));
}

void frame_state::read(const item& i, std::uint32_t l) {
  variable_slot& variable = *c_.variables[i.variable];
  std::unique_lock lock(variable.guard, std::defer_lock);
  if (!lanes_[l].open) lock.lock();
  need_value(variable, i);
  values_.hold(i.first_out, variable.value);
}

namespace {

any_array copied(const any_array& a, device_runtime& d) {
  if (d.space().on_host()) return a.clone();
  buffer b(d.space().allocate(bytes_of(a.type(), a.shape())));
  d.copy_within(b.data(), a.raw(), a.bytes(), nullptr);
  return any_array(a.type(), a.shape(), std::move(b));
}

/// The variable's elements for work of a device that may yet fail: nobody else holds them, and they
/// are what they were until that work is done. `open`: the segment that the work belongs to.
void* writable(variable_slot& v, device_runtime& d, segment_launches* open = nullptr) {
  if (!v.value.storage().unique()) {
    if (open) open->interrupt();  // what comes before the copy
    v.value = copied(v.value, d);
  }
  return const_cast<void*>(v.value.raw());
}

}  // namespace

void frame_state::assign(const item& i, std::uint32_t in, std::uint32_t l) {
  variable_slot& variable = *c_.variables[i.variable];
  device_runtime& device = c_.device(i);
  wait_on_device(i);
  const bool only_here = values_.is_only_holder(in);
  any_array value = values_.as_array(in);
  if (!fits(declared_of(i).shape, value.shape()))
    fail(errc::invalid_argument, "[assign] ", value.shape(), " is assigned to ", declared_of(i));
  any_array before;  // freed without the lock
  wake_at_end waiting(variable.waiting);
  std::lock_guard lock(variable.guard);
  if (i.only_first && (variable.value.valid() || variable.restoring)) {
    if (!c_.values[i.first_out].uses) return;
    fail_if_restoring(variable);
    return values_.hold(i.first_out, variable.value);
  }
  if (!i.only_first) need_standing(variable, i);
  waiting.all();
  // After a reset another plan may have given it another type.
  if (variable.type.type != value.type() || !fits(variable.type.shape, value.shape()))
    variable.change(variable_of(i));
  any_array& now = variable.value;
  const bool same_shape = now.valid() && now.shape() == value.shape();
  if (i.keeps_extents && now.valid() && !same_shape)
    fail(errc::invalid_argument, "[assign] ", value.type(), value.shape(),
         " does not fit variable \"", variable.name, "\", which is ", now.type(), now.shape());
  if (device.asynchronous() && same_shape && now.type() == value.type() &&
      now.storage().home() == &device.space()) {
    device.copy_within(writable(variable, device), value.raw(), value.bytes(), step_on(i));
    value = now;
  } else {
    // Only elements that the frame itself made, or nobody else has, can be given to the variable.
    const bool given = c_.values[c_.values[in].root].where == storage::buffer ||
                       (only_here && value.storage().home() == &device.space());
    if (!given) value = copied(value, device);
    before = std::exchange(now, value);
    variable.device = device.info().name;
    if (device.asynchronous()) lanes_[l].variables.push_back({&variable, now.raw(), before});
  }
  if (c_.values[i.first_out].uses) values_.hold(i.first_out, std::move(value));
}

void frame_state::update(const item& i, std::uint32_t k, std::uint32_t l) {
  const auto variables = std::span(c_.variables).subspan(i.variable, i.outs);
  lane& me = lanes_[l];
  std::optional<locked_variables> lock;
  if (!me.open) {
    me.in_order.clear();
    for (const auto& v : variables) me.in_order.push_back(v.get());
    locked_variables::sort(me.in_order);
    lock.emplace(me.in_order);
  }
  bool dynamic = false;
  for (std::uint32_t o = 0; o < i.outs; ++o) {
    need_value(*variables[o], i, o);
    dynamic |= !variable_of(i, o).shape.is_static();
  }
  // The variables' extents may have changed, whatever the inputs' are.
  if (dynamic || (i.dynamic && values_.dirty())) prepare(i, l);
  device_runtime& device = c_.device(i);
  for (std::uint32_t o = 0; o < i.outs; ++o) {
    variable_slot& v = *variables[o];
    me.fresh[o].reset();  // of an update that failed
    if (device.asynchronous())
      writable(v, device, me.open);
    else if (!v.value.storage().unique())
      me.fresh[o] = buffer(device.space().allocate(v.value.bytes()));
    me.in[o] = v.value.raw();
    me.out[o] = me.fresh[o] ? me.fresh[o].data() : const_cast<void*>(v.value.raw());
  }
  for (std::uint32_t a = 0; a < i.ins; ++a)
    me.in[i.outs + a] = values_.address(c_.inputs[i.first_in + a]);
  kernel_call call{me.in.data(), me.out.data(), context_};
  // On one stream, the order of launches is enough: the lock may go before the work is done.
  launch(i, k, l, *kernels_[i.number], call, i.outs + i.ins, i.outs);
  for (std::uint32_t o = 0; o < i.outs; ++o) {
    any_array& now = variables[o]->value;
    if (me.fresh[o]) now = {now.type(), now.shape(), std::move(me.fresh[o])};
    if (c_.values[i.first_out + o].uses) values_.hold(i.first_out + o, now);
  }
}

// Transfers between devices.

void frame_state::copy(const item& i, std::uint32_t in, std::uint32_t l) {
  device_runtime& from = c_.device(c_.values[in]);
  device_runtime& to = c_.device(i);
  const std::uint32_t out = i.first_out;
  values_.set_shape(out, values_.shape_of(in));
  any_array value = values_.as_array(in);
  if (c_.values[out].where == storage::shared) return values_.hold(out, std::move(value));
  const std::size_t bytes = value.bytes();
  void* const into = values_.address_to_write(out);
  const event_ptr& before = event_of(in);
  event_ptr done;
  if (from.space().on_host()) {
    done = to.copy_in(into, value.raw(), bytes, value.storage());
  } else if (to.space().on_host()) {
    if (before) from.wait(before);
    done = from.copy_out(into, value.raw(), bytes, value.storage());
  } else {
    const event_ptr after[] = {before, from.record()};
    if (!to.copy_between(into, from, value.raw(), bytes, value.storage(), after, done)) {
      // Through the host: the second half begins when the first is done.
      if (before) from.wait(before);
      buffer host = buffer::host(bytes);
      if (auto e = from.copy_out(host.data(), value.raw(), bytes, value.storage())) to.wait(e);
      done = to.copy_in(into, host.data(), bytes, host);
    }
  }
  set_event(out, std::move(done), lanes_[l].pending);
}

void frame_state::fetch(const item& i, std::uint32_t in, std::uint32_t l) {
  wait_on_device(i);
  const any_array value = values_.as_array(in);
  any_array host(value.type(), value.shape());
  auto done =
      c_.device(i).copy_out(host.mutable_raw(), value.raw(), value.bytes(), value.storage());
  if (done) lanes_[l].pending.push_back(std::move(done));
  fetched_[i.number] = std::move(host);
}

}  // namespace deft::ext::exec
