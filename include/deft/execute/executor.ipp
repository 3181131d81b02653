// SPDX-License-Identifier: Apache-2.0
// deft/execute/executor.ipp: runs of a schedule.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deft/execute/bound_rows.hpp>
#include <deft/execute/frame_values.hpp>
#include <deft/execute/lane_gate.hpp>
#include <deft/execute/schedule.hpp>
#include <deft/execute/team.hpp>
#include <optional>

namespace deft {
/// What changes during a run.
class executable::frame::impl {
 public:
  explicit impl(const compiled& c)
      : c_(c),
        values_(c),
        events_(c.events),
        bound_(c.items.size()),
        in_(c.inputs.size()),
        out_(c.values.size()),
        prepared_(c.items.size()),
        lanes_(c.lanes.size()),
        signals_(std::make_unique<std::atomic<std::uint32_t>[]>(c.signals)),
        fetched_(c.fetch_values.size()) {
    for (auto* d : c.devices) steps_.push_back(d->make_step());
    if (c.may_park)
      for (std::uint32_t l = 0; l <= c.lanes.size(); ++l)
        gates_.push_back(std::make_shared<exec::lane_gate>(l));
    if (!c.kernels_taken.exchange(true)) kernels_ = std::move(c.kernels);
    kernels_.resize(c.items.size());
    for (std::uint32_t k = 0; k < c.items.size(); ++k) {
      const auto& i = c.items[k];
      if (kernels_[k] || (i.what != exec::action::run && i.what != exec::action::update)) continue;
      try {
        kernels_[k] = c.make_kernel(i);
      } catch (const error& e) {
        throw located(e, k);
      }
    }
    for (std::uint32_t l = 0; l < lanes_.size(); ++l) lanes_[l].job = {{&run_job}, this, l};
  }
  ~impl() {
    for (auto& g : gates_) g->close();
  }

  bool start(std::span<const feed_ref> feeds, const step_context& context, step_driver* driver) {
    release();
    released_ = false;
    context_ = &context;
    driver_ = driver;
    values_.set_dirty(force_);
    force_ = true;  // until the run has ended well
    failed_.store(false, std::memory_order_relaxed);
    failure_ = nullptr;
    try {
      if (values_.take_arenas()) unbind();
      for (auto& s : steps_)
        if (s) s->begin();
      for (std::size_t f = 0; f < c_.feed_values.size(); ++f)
        values_.check_feed(c_.feed_values[f], feeds[f]);
      for (std::size_t f = 0; f < c_.feed_values.size(); ++f)
        set_event(c_.feed_values[f], values_.set_feed(c_.feed_values[f], feeds[f]), feeding_);
      values_.send_blocks(context.step, feeding_);
    } catch (const error&) {
      give_up_start();
      throw;
    } catch (const std::bad_alloc&) {
      give_up_start();
      throw error(errc::resource_exhausted, "out of memory");
    }
    ++run_;
    if (!c_.may_park) {
      if (!lanes_.empty()) lanes_[0].pc = 0, run_items(0);
      end_run();
      return over();
    }
    for (std::size_t s = 0; s < c_.signals; ++s) signals_[s].store(0, std::memory_order_relaxed);
    for (auto& g : gates_) g->open(run_, *driver);
    stopped_.emplace(context.stop, interrupter{this});
    lanes_left_.store(static_cast<std::uint32_t>(lanes_.size()) + 1);
    std::vector<std::uint32_t> ready;
    for (std::uint32_t l = 0; l < lanes_.size(); ++l) lanes_[l].pc = c_.lanes[l].first;
    for (std::uint32_t l = static_cast<std::uint32_t>(lanes_.size()); l-- > 0;)
      if (!c_.lanes[l].parallel || !offer(lanes_[l].job)) ready.push_back(l);
    // This call counts as a lane, so that the run does not end while it looks at the others.
    drive(ready);
    // What no other thread has begun by now it need not begin.
    if (c_.parallel)
      for (std::uint32_t l = 0; l < lanes_.size(); ++l)
        if (c_.lanes[l].parallel && take_back(lanes_[l].job)) ready.push_back(l), drive(ready);
    if (!lane_ended()) return false;
    return over();
  }

  void resume(std::uint32_t lane) {
    std::vector<std::uint32_t> ready{lane};
    step_driver* driver = driver_;
    if (lane == lanes_.size() ? finish() : drive(ready)) driver->ended();
  }
  std::shared_ptr<const error> failure() const { return failure_; }
  bool may_park() const { return c_.may_park; }

  const any_array& peek(std::size_t i) {
    any_array& f = fetched_[i];
    const std::uint32_t v = c_.fetch_values[i];
    if (!f.valid() && v != exec::none) {
      f = values_.as_array(v);
      if (!f.storage() || f.storage().is_borrowed()) f = f.clone();
    }
    return f;
  }
  any_array take(std::size_t i) {
    peek(i);
    return std::move(fetched_[i]);
  }

  void release() {
    if (std::exchange(released_, true)) return;
    for (auto& f : fetched_)
      if (f.valid()) f = any_array();
    values_.release();
  }

 private:
  struct lane_job : team_job {
    impl* frame = nullptr;
    std::uint32_t lane = 0;
  };
  static void run_job(team_job& j) {
    auto& mine = static_cast<lane_job&>(j);
    mine.frame->resume(mine.lane);
  }
  struct lane {
    std::uint32_t pc = 0;  ///< item
    lane_job job;
    exec::bound_rows rows;
    std::vector<tensor_type> in_types, out_types;
    std::vector<event_ptr> pending;  ///< copies that the run has to wait for
  };

  /// The arenas are at other addresses.
  void unbind() {
    std::ranges::fill(bound_, bound_row());
    for (auto& l : lanes_) l.rows.clear();
  }
  /// Nothing refers to the feeds any more.
  void give_up_start() {
    for (auto& e : feeding_) e->synchronize();
    feeding_.clear();
    values_.give_arenas();
  }

  void set_event(std::uint32_t v, event_ptr done, std::vector<event_ptr>& pending) {
    if (c_.values[v].event == exec::none) return;
    events_[c_.values[v].event] = done;
    if (done) pending.push_back(std::move(done));
  }

  // Items.

  /// Shapes of item `k`, from those of its inputs.
  void prepare(std::uint32_t k, std::uint32_t in_lane) {
    const exec::item& i = c_.items[k];
    const node_def& n = c_.node(i);
    const bool update = i.what == exec::action::update;
    auto& in = lanes_[in_lane].in_types;
    auto& out = lanes_[in_lane].out_types;
    in.clear();
    if (update) in.push_back(values_.type_of(c_.inputs[i.first_in]));
    for (std::uint32_t a = 0; a < i.ins; ++a)
      in.push_back(values_.type_of(c_.inputs[i.first_in + a]));
    if (i.dynamic) {
      if (prepared_[k] == in && !in.empty()) return fit_slots(i);
      prepared_[k].clear();  // until all of this has gone well
      const std::span<const tensor_type> seen = in;
      infer_types(*n.op, {update ? seen.subspan(1) : seen, n.attributes}, out);
      for (std::uint32_t o = 0; o < i.outs; ++o) {
        if (!out[o].shape.is_static())
          fail(errc::internal, "[", n.op->name, "] cannot tell the shape of its result: ", out[o]);
        if (!fits(n.outputs[o].shape, out[o].shape))
          fail(errc::invalid_argument, "[", n.op->name, "] the result is ", out[o].shape, " where ",
               n.outputs[o].shape, " was declared");
        values_.infer_shape(i.first_out + o, out[o].shape);
      }
      prepared_[k] = in;
    } else {
      out = n.outputs;
    }
    if (kernels_[k]) kernels_[k]->prepare(in, out);
    if (i.dynamic) fit_slots(i);
  }
  void fit_slots(const exec::item& i) {
    if (i.what != exec::action::run) return;
    for (std::uint32_t o = 0; o < i.outs; ++o) values_.fit_slot(i.first_out + o);
  }

  /// From lanes_[l].pc to the end of the lane, true, or until it has to wait, false: then the lane
  /// may be on another thread already. Lanes that it wakes are added to `ready`.
  bool run_lane(std::uint32_t l, std::vector<std::uint32_t>& ready) {
    lane& me = lanes_[l];
    const bool observed = context_->observer != nullptr;
    try {
      for (; me.pc < c_.lanes[l].end; ++me.pc) {
        if (failed_.load(std::memory_order_relaxed)) return true;
        if (const bound_row& b = bound_[me.pc]; b.run && !observed) {
          b.run(*b.call);
          continue;
        }
        const exec::item& i = c_.items[me.pc];
        check_stop();
        if (i.awaits && !inputs_ready(i, l)) {
          if (!park(l)) {
            --me.pc;
            continue;
          }
          return false;
        }
        switch (i.what) {
          case exec::action::signal:
            give_signal(i.number, ready);
            continue;
          case exec::action::wait:
            if (!wait_signal(i.number, l)) return false;
            continue;
          case exec::action::perform:
            observe_begin(i, l);
            if (perform(i, l)) break;
            if (!park(l)) {
              --me.pc;
              continue;
            }
            return false;
          default:
            observe_begin(i, l);
            run_item(i, me.pc, l);
        }
        observe_end(i, l);
        for (std::uint32_t r = 0; r < i.releases; ++r)
          values_.drop(c_.releases[i.first_release + r]);
      }
    } catch (const error& e) {
      note_failure(e, me.pc);
    } catch (const std::bad_alloc&) {
      note_failure(error(errc::resource_exhausted, "out of memory"), me.pc);
    }
    return true;
  }

  /// The one lane of a part in which nothing waits.
  void run_items(std::uint32_t l) {
    lane& me = lanes_[l];
    const std::uint32_t end = c_.lanes[l].end;
    const bool observed = context_->observer != nullptr;
    try {
      for (; me.pc < end; ++me.pc) {
        if (const bound_row& b = bound_[me.pc]; b.run && !observed) {
          b.run(*b.call);
          continue;
        }
        const exec::item& i = c_.items[me.pc];
        observe_begin(i, l);
        run_item(i, me.pc, l);
        observe_end(i, l);
        for (std::uint32_t r = 0; r < i.releases; ++r)
          values_.drop(c_.releases[i.first_release + r]);
        check_stop();
      }
    } catch (const error& e) {
      note_failure(e, me.pc);
    } catch (const std::bad_alloc&) {
      note_failure(error(errc::resource_exhausted, "out of memory"), me.pc);
    }
  }

  void check_stop() const {
    if (context_->stop.stop_requested()) throw error(errc::cancelled, "the step was cancelled");
  }
  void observe_begin(const exec::item& i, std::uint32_t l) const {
    if (context_->observer) context_->observer->begin(c_.node(i), l);
  }
  void observe_end(const exec::item& i, std::uint32_t l) const {
    if (context_->observer) context_->observer->end(c_.node(i), l);
  }

  void run_item(const exec::item& i, std::uint32_t k, std::uint32_t l) {
    const std::uint32_t in = i.ins ? c_.inputs[i.first_in] : exec::none;
    switch (i.what) {
      case exec::action::run:
        return run_kernel(i, k, l);
      case exec::action::read:
        return read(i);
      case exec::action::assign:
        return assign(i, in);
      case exec::action::update:
        return update(i, in, k, l);
      case exec::action::alias: {
        if (i.dynamic && values_.dirty()) prepare(k, l);
        values_.share(i.first_out, in);
        return;
      }
      case exec::action::copy:
        return copy(i, in, l);
      case exec::action::fetch:
        return fetch(i, in, l);
      case exec::action::refuse:
        fail(errc::invalid_argument, "[placeholder] a value is needed, and none was fed");
      default:
        fail(errc::internal, "an item that is not an operation's");
    }
  }

  void run_kernel(const exec::item& i, std::uint32_t k, std::uint32_t l) {
    if (i.dynamic && values_.dirty()) prepare(k, l);
    kernel& what = *kernels_[k];
    for (std::uint32_t a = i.first_in; a < i.first_in + i.ins; ++a)
      in_[a] = values_.address(c_.inputs[a]);
    for (std::uint32_t o = i.first_out; o < i.first_out + i.outs; ++o) {
      if (!c_.values[o].uses && what.optional_output(static_cast<int>(o - i.first_out)))
        out_[o] = nullptr;
      else
        out_[o] = values_.place(o);
    }
    kernel_call call{in_.data() + i.first_in, out_.data() + i.first_out, context_};
    if (i.bindable) bound_[k] = lanes_[l].rows.add(what.bind(call));
    launch(i, k, what, call, i.ins, i.outs);
  }

  void launch(const exec::item& i, std::uint32_t k, kernel& what, kernel_call& call,
              std::uint32_t ins, std::uint32_t outs) {
    constexpr double long_item = 20'000;  // nanoseconds
    if (context_->exchange && what.cost() > long_item) context_->exchange->flush();
    buffer scratch;
    if (const std::size_t bytes = what.scratch()) {
      scratch = i.device->arenas().take(bytes);
      call.scratch = scratch.data();
    }
    if (i.on_host) {
      what.run(call);
    } else {
      wait_on_device(i);
      call.step_word = values_.block_on(c_.values[i.first_out].space);
      i.device->launch({what, call, ins, outs, k, i.what == exec::action::update}, step_on(i));
    }
    // Whoever takes it next launches after this.
    if (scratch) i.device->arenas().give(std::move(scratch));
  }
  device_step* step_on(const exec::item& i) const {
    auto at = std::ranges::find(c_.devices, i.device);
    return at == c_.devices.end() ? nullptr : steps_[at - c_.devices.begin()].get();
  }

  /// The device goes on with what is launched next once copies of its operands are there.
  void wait_on_device(const exec::item& i) {
    if (!i.awaits) return;
    for (std::uint32_t a = 0; a < i.ins; ++a)
      if (const event_ptr& e = event_of(c_.inputs[i.first_in + a])) i.device->wait(e);
  }
  const event_ptr& event_of(std::uint32_t v) const {
    static const event_ptr none_there;
    const std::uint32_t e = c_.values[c_.values[v].root].event;
    return e == exec::none ? none_there : events_[e];
  }
  /// Whether the host may look at the item's inputs; if not, it is called back.
  bool inputs_ready(const exec::item& i, std::uint32_t l) {
    if (i.what == exec::action::copy || i.what == exec::action::fetch || !i.on_host) return true;
    for (std::uint32_t a = 0; a < i.ins; ++a) {
      const event_ptr& e = event_of(c_.inputs[i.first_in + a]);
      if (!e || e->done()) continue;
      call_back(e, l);
      return false;
    }
    look_at_devices();
    return true;
  }
  /// A step that failed on a device sends and computes nothing more.
  void look_at_devices() {
    std::uint32_t item = 0;
    for (auto& s : steps_)
      if (s)
        if (auto e = s->failure(item)) throw located(*e, item);
  }
  void call_back(const event_ptr& e, std::uint32_t l) {
    gates_[l]->listen();
    e->when_done([w = waker(gates_[l], run_)] { w(); });
  }
  bool park(std::uint32_t l) {
    if (context_->exchange) context_->exchange->flush();
    return gates_[l]->park();
  }

  // Signals between lanes: 0, given, or 2 more than the number of the lane that waits.

  bool wait_signal(std::uint32_t s, std::uint32_t l) {
    constexpr std::uint32_t given = 1;
    std::uint32_t now = 0;
    if (signals_[s].load(std::memory_order_acquire) == given) return true;
    if (context_->exchange) context_->exchange->flush();
    // Once the lane is known to wait, another thread may have it.
    ++lanes_[l].pc;
    if (signals_[s].compare_exchange_strong(now, l + 2, std::memory_order_acq_rel)) return false;
    --lanes_[l].pc;
    return true;
  }
  void give_signal(std::uint32_t s, std::vector<std::uint32_t>& ready) {
    const std::uint32_t before = signals_[s].exchange(1, std::memory_order_acq_rel);
    if (before < 2) return;
    const std::uint32_t l = before - 2;
    // What only starts work of a device does not wait until this lane has come to its end.
    if (c_.lanes[l].quick) {
      if (run_lane(l, ready)) lane_ended();
    } else if (!c_.parallel || !driver_->wake_idle(l)) {
      ready.push_back(l);
    }
  }

  class call_of final : public value_call {
   public:
    call_of(impl& f, const exec::item& i, std::uint32_t lane) : f_(f), i_(i), lane_(lane) {}
    std::size_t inputs() const override { return i_.ins; }
    any_array input(std::size_t i) const override {
      any_array a = f_.values_.as_array(f_.c_.inputs[i_.first_in + i]);
      return a.storage().is_borrowed() ? a.clone() : a;
    }
    void output(std::size_t o, any_array a) override {
      const std::uint32_t v = i_.first_out + static_cast<std::uint32_t>(o);
      const tensor_type& declared = f_.c_.values[v].declared;
      if (a.type() != declared.type || !fits(declared.shape, a.shape()))
        fail(errc::invalid_argument, "[", f_.c_.node(i_).op->name, "] ", a.type(), a.shape(),
             " came where ", declared, " is expected");
      f_.values_.hold(v, std::move(a));
    }
    const step_context& step() const override { return *f_.context_; }
    waker make_waker() const override { return waker(f_.gates_[lane_], f_.run_); }

   private:
    impl& f_;
    const exec::item& i_;
    std::uint32_t lane_;
  };
  bool perform(const exec::item& i, std::uint32_t l) {
    gates_[l]->listen();
    // What was to end the run before it listened did not wake it.
    check_stop();
    if (failed_.load()) throw error(errc::cancelled, "the step has failed");
    call_of c(*this, i, l);
    return c_.performers[i.number]->run(c);
  }

  // State.

  void need_value(const variable_slot& v, const exec::item& i) const {
    if (!v.value.valid())
      fail(errc::failed_precondition, "variable \"", v.name, "\" is not initialized");
    const tensor_type& declared = c_.node(i).outputs[0];
    if (v.value.type() != declared.type || !fits(declared.shape, v.value.shape()))
      fail(errc::failed_precondition, "variable \"", v.name, "\" is ", v.value.type(),
           v.value.shape(), " now, not ", declared);
    placement here = c_.node(i).device;
    if (v.device != here && v.value.storage().home() != &i.device->space())
      fail(errc::failed_precondition, "variable \"", v.name, "\" lives on ", to_string(*v.device),
           ", and cannot be used on ", to_string(*here));
  }

  void read(const exec::item& i) {
    variable_slot& variable = *i.variable;
    std::lock_guard lock(variable.guard);
    need_value(variable, i);
    values_.hold(i.first_out, variable.value);
  }

  void assign(const exec::item& i, std::uint32_t in) {
    variable_slot& variable = *i.variable;
    wait_on_device(i);
    any_array value = values_.as_array(in);
    if (!fits(c_.node(i).outputs[0].shape, value.shape()))
      fail(errc::invalid_argument, "[assign] ", value.shape(), " is assigned to ",
           c_.node(i).outputs[0]);
    // Only elements that the frame itself made can be given to the variable.
    if (c_.values[c_.values[in].root].where != exec::home::own) value = copied(value, *i.device);
    any_array before;  // freed without the lock
    std::lock_guard lock(variable.guard);
    before = std::exchange(variable.value, value);
    variable.device = i.device->info().name;
    values_.hold(i.first_out, std::move(value));
  }
  static any_array copied(const any_array& a, device_runtime& d) {
    if (d.space().on_host()) return a.clone();
    buffer b(d.space().allocate(exec::bytes_of(a.type(), a.shape())));
    d.copy_within(b.data(), a.raw(), a.bytes());
    return any_array(a.type(), a.shape(), std::move(b));
  }

  void update(const exec::item& i, std::uint32_t in, std::uint32_t k, std::uint32_t l) {
    variable_slot& variable = *i.variable;
    std::lock_guard lock(variable.guard);
    need_value(variable, i);
    if (!(values_.type_of(in) == tensor_type{variable.value.shape(), variable.value.type()}))
      fail(errc::invalid_argument, "[", c_.node(i).op->name, "] ", values_.type_of(in),
           " updates a variable of ", variable.value.type(), variable.value.shape());
    if (i.dynamic && values_.dirty()) prepare(k, l);
    const buffer& elements = variable.value.storage();
    const void* args[] = {elements.data(), values_.address(in)};
    buffer fresh;
    if (!elements.unique())
      fresh = buffer(
          i.device->space().allocate(exec::bytes_of(variable.value.type(), values_.shape_of(in))));
    void* out[] = {fresh ? fresh.data() : elements.data()};
    kernel_call call{args, out, context_};
    // On one stream, the order of launches is enough: the lock may go before the work is done.
    launch(i, k, *kernels_[k], call, 2, 1);
    if (fresh) variable.value = {variable.value.type(), variable.value.shape(), std::move(fresh)};
    if (c_.values[i.first_out].uses) values_.hold(i.first_out, variable.value);
  }

  // Transfers between devices.

  void copy(const exec::item& i, std::uint32_t in, std::uint32_t l) {
    device_runtime& from = *c_.values[in].device;
    device_runtime& to = *i.device;
    const std::uint32_t out = i.first_out;
    values_.set_shape(out, values_.shape_of(in));
    any_array value = values_.as_array(in);
    if (c_.values[out].where == exec::home::held) return values_.hold(out, std::move(value));
    const std::size_t bytes = value.bytes();
    void* const into = values_.place(out);
    const event_ptr& before = event_of(in);
    event_ptr done;
    if (from.space().on_host()) {
      done = to.copy_in(into, value.raw(), bytes, value.storage());
    } else if (to.space().on_host()) {
      if (before) from.wait(before);
      done = from.copy_out(into, value.raw(), bytes, value.storage());
    } else {
      if (before) to.wait(before);
      to.wait(from.record());
      if (!to.copy_between(into, from, value.raw(), bytes, value.storage(), done)) {
        // Through the host: the second half begins when the first is done.
        buffer host = buffer::host(bytes);
        if (auto e = from.copy_out(host.data(), value.raw(), bytes, value.storage())) to.wait(e);
        done = to.copy_in(into, host.data(), bytes, host);
      }
    }
    set_event(out, std::move(done), lanes_[l].pending);
  }

  void fetch(const exec::item& i, std::uint32_t in, std::uint32_t l) {
    wait_on_device(i);
    const any_array value = values_.as_array(in);
    any_array host(value.type(), value.shape());
    auto done = i.device->copy_out(host.mutable_raw(), value.raw(), value.bytes(), value.storage());
    if (done) lanes_[l].pending.push_back(std::move(done));
    fetched_[i.number] = std::move(host);
  }

  // The end.

  /// True: this call ended the run.
  bool drive(std::vector<std::uint32_t>& ready) {
    while (!ready.empty()) {
      const std::uint32_t l = ready.back();
      ready.pop_back();
      if (run_lane(l, ready) && lane_ended()) return true;
    }
    return false;
  }
  bool lane_ended() {
    if (context_->exchange) context_->exchange->flush();
    return lanes_left_.fetch_sub(1, std::memory_order_acq_rel) == 1 && finish();
  }

  /// What the devices still do belongs to the run: it ends once that is done. False if it has to
  /// wait; then the frame may be in use by another thread.
  bool finish() {
    const auto end = static_cast<std::uint32_t>(lanes_.size());
    struct countdown {
      std::atomic<std::size_t> left;
      waker last;
    };
    auto gather = [this](std::vector<event_ptr>& events) {
      for (auto& e : events) ends_.push_back(std::move(e));
      events.clear();
    };
    gather(feeding_);
    for (auto& l : lanes_) gather(l.pending);
    if (!std::exchange(ends_known_, true))
      for (auto* d : c_.devices)
        if (auto e = d->record()) ends_.push_back(std::move(e));
    for (;;) {
      std::erase_if(ends_, [](const event_ptr& e) { return e->done(); });
      if (ends_.empty()) break;
      gates_[end]->listen();
      auto all = std::make_shared<countdown>(ends_.size(), waker(gates_[end], run_));
      for (const auto& e : std::vector(ends_))
        e->when_done([all] {
          if (all->left.fetch_sub(1, std::memory_order_acq_rel) == 1) all->last();
        });
      if (gates_[end]->park()) return false;
    }
    ends_known_ = false;
    end_run();
    return true;
  }

  void end_run() {
    stopped_.reset();
    for (auto& g : gates_) g->close();
    try {
      if (!failed_.load(std::memory_order_relaxed)) look_at_devices();
    } catch (const error& e) {
      failure_ = std::make_shared<const error>(e);
      failed_ = true;
    }
    for (auto& e : events_) e.reset();
    values_.give_arenas();
    force_ = failed_.load(std::memory_order_relaxed);
  }
  /// After the run: throws what it failed with.
  bool over() const {
    if (failure_) throw error(*failure_);
    return true;
  }

  /// Lanes that wait look again.
  void interrupt() {
    for (auto& g : gates_) g->interrupt();
  }
  struct interrupter {
    impl* f;
    /// A lane that goes on here may end the run, and the frame with it.
    void operator()() const {
      const auto gates = f->gates_;
      for (const auto& g : gates) g->interrupt();
    }
  };

  /// The first error is the run's; lanes that wait look again, and see it.
  void note_failure(const error& e, std::uint32_t item) {
    {
      std::lock_guard lock(failure_guard_);
      if (!failure_) failure_ = std::make_shared<const error>(located(e, item));
    }
    failed_.store(true, std::memory_order_release);
    if (!c_.may_park) return;
    for (std::uint32_t s = 0; s < c_.signals; ++s)
      if (const auto before = signals_[s].exchange(1, std::memory_order_acq_rel); before >= 2)
        driver_->wake(before - 2);
    interrupt();
  }
  error located(const error& e, std::uint32_t item) const {
    if (item >= c_.items.size() || !e.node().empty()) return e;
    const node_def& n = c_.node(c_.items[item]);
    return error(e.code(), e.message(), n.name, n.place, to_string(*n.device));
  }

  const compiled& c_;
  exec::frame_values values_;
  std::vector<event_ptr> events_;
  std::vector<bound_row> bound_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<std::vector<tensor_type>> prepared_;
  std::vector<kernel_ptr> kernels_;
  std::vector<lane> lanes_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> signals_;
  std::vector<any_array> fetched_;
  std::vector<std::shared_ptr<exec::lane_gate>> gates_;  ///< of the lanes, and of the end
  std::vector<std::unique_ptr<device_step>> steps_;      ///< by number of c_.devices
  std::vector<event_ptr> feeding_;  ///< copies of feeds, which the run has to wait for
  std::vector<event_ptr> ends_;     ///< all that a run whose lanes have ended waits for
  bool ends_known_ = false;
  std::optional<std::stop_callback<interrupter>> stopped_;
  const step_context* context_ = nullptr;
  step_driver* driver_ = nullptr;
  std::mutex failure_guard_;
  std::shared_ptr<const error> failure_;
  std::atomic<std::uint32_t> lanes_left_{0};
  std::atomic<bool> failed_{false};
  bool released_ = true;
  bool force_ = true;  ///< the last run did not end: shapes may be half changed
  std::uint64_t run_ = 0;
};

executable::frame::frame(const compiled& c) : impl_(std::make_unique<impl>(c)) {}
executable::frame::~frame() = default;
void executable::frame::run(std::span<const feed_ref> feeds, const step_context& context) {
  if (!impl_->may_park()) {
    impl_->start(feeds, context, nullptr);
    return;
  }
  exec::blocking_driver driver;
  if (impl_->start(feeds, context, &driver)) return;
  driver.drive(*this);
  if (auto e = impl_->failure()) throw error(*e);
}
bool executable::frame::start(std::span<const feed_ref> feeds, const step_context& context,
                              step_driver& driver) {
  return impl_->start(feeds, context, &driver);
}
void executable::frame::resume(std::uint32_t lane) { impl_->resume(lane); }
std::shared_ptr<const error> executable::frame::failure() const { return impl_->failure(); }
const any_array& executable::frame::peek(std::size_t i) { return impl_->peek(i); }
any_array executable::frame::take(std::size_t i) { return impl_->take(i); }
void executable::frame::release() { impl_->release(); }

}  // namespace deft
