// SPDX-License-Identifier: Apache-2.0
// deft/execute/calls.ipp: functions called by an item, in frames of their own.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/core/hash.hpp>
#include <deft/execute/calls.hpp>

namespace deft::ext::exec {

/// Gives an item's call kernel what it asks for.
class frame_state::call_of_function final : public call_context {
 public:
  call_of_function(frame_state& f, const item& i) : f_(f), i_(i), c_(*f.calling_[i.number]) {}
  std::size_t inputs() const override { return i_.ins; }
  feed_ref input(std::size_t i) const override {
    return f_.values_.as_ref(f_.c_.inputs[i_.first_in + i]);
  }
  std::uint64_t calls() const override { return c_.calls; }
  feed_ref result(std::size_t i) override { return c_.callees[c_.current].frame->result(i); }
  void argument(feed_ref value) override { c_.arguments.push_back(std::move(value)); }
  void output(std::size_t o, feed_ref value) override {
    const tensor_type& declared = f_.declared_of(i_, static_cast<std::uint32_t>(o));
    if (value.type != declared.type || !fits(declared.shape, value.shape))
      fail(errc::invalid_argument, "[", f_.c_.label(i_).op->name, "] result ", o, " is ",
           tensor_type{value.shape, value.type}, ", and ", declared, " was declared");
    f_.values_.hold(i_.first_out + static_cast<std::uint32_t>(o), value);
  }
  any_array on_host(const feed_ref& value) override {
    any_array host(value.type, value.shape);
    auto done = f_.c_.device(i_).copy_out(host.mutable_raw(), value.data, host.bytes(), value.keep);
    if (done) done->synchronize();
    return host;
  }

 private:
  frame_state& f_;
  const item& i_;
  calling& c_;
};

bool frame_state::call(const item& i, std::uint32_t l) {
  const call_info& what = c_.calls[i.number];
  auto& made = calling_[i.number];
  if (!made) made = std::make_unique<calling>(what);
  calling& c = *made;
  if (!c.active) {
    wait_on_device(i);
    c.calls = 0;
    c.active = true;
  } else if (const auto why = c.callees[c.current].frame->failure()) {
    c.active = false;
    function_failed(i, *why);
  } else {
    ++c.calls;
  }
  call_of_function context(*this, i);
  for (;; ++c.calls) {
    c.arguments.clear();
    std::size_t f = call_kernel::done;
    if (const auto why = failure_of([&] { f = what.kernel->next(context); })) {
      c.active = false;
      throw error(*why);
    }
    if (f == call_kernel::done) break;
    bool ended = true;
    if (const auto why = failure_of([&] { ended = begin_function(i, f, l); })) {
      c.active = false;
      function_failed(i, *why);
    }
    if (!ended) return false;
  }
  c.active = false;
  return true;
}

bool frame_state::begin_function(const item& i, std::size_t f, std::uint32_t l) {
  const auto& what = c_.calls[i.number].functions.at(f);
  calling& c = *calling_[i.number];
  calling::callee& to = c.callees[f];
  const executable::compiled& code = *what.code;
  if (!to.frame) {
    to.frame = std::make_unique<frame_state>(code);
    to.driver = std::make_unique<call_driver>(code.lanes.size());
  }
  if (c.arguments.size() != what.function->parameters.size())
    fail(errc::internal, "[function] \"", what.function->name, "\" takes ",
         what.function->parameters.size(), " arguments, not ", c.arguments.size());
  to.feeds.clear();
  for (const std::uint32_t number : code.feed_numbers) to.feeds.push_back(c.arguments[number]);
  const std::uint64_t path = mix(mix(context_->path, what.function->call + 1), c.calls + 1);
  to.observer.to = context_->observer;
  to.observer.first_lane = what.first_lane;
  c.context.emplace(step_context{.step = context_->step,
                                 .draw = mix(context_->draw, path),
                                 .path = path,
                                 .exchange = nullptr,
                                 .stop = context_->stop,
                                 .observer = context_->observer ? &to.observer : nullptr});
  c.current = f;
  c.stopped = false;
  if (code.may_park) {
    gate(l)->listen();
    to.driver->begin(waker(gate(l), run_));
  }
  c.running = true;
  const auto why = failure_of([&] {
    if (to.frame->start(to.feeds, *c.context, to.driver.get())) c.running = false;
  });
  if (why) c.running = false;
  if (c.running) {
    if (!functions_ended(l)) return false;
    if (const auto failed = to.frame->failure()) throw error(*failed);
    return true;
  }
  c.updated |= to.frame->has_updated();
  if (why) throw error(*why);
  return true;
}

bool frame_state::functions_ended(std::uint32_t l) {
  const item& i = c_.items[lanes_[l].pc];
  if (i.what != action::call) return true;
  calling* const c = calling_[i.number].get();
  if (!c || !c->running) return true;
  calling::callee& to = c->callees[c->current];
  gate(l)->listen();
  if (failed_.load() && !std::exchange(c->stopped, true))
    to.frame->stop(error(errc::cancelled, "the step has failed"));
  if (!to.driver->drive(*to.frame)) return false;
  c->running = false;
  c->updated |= to.frame->has_updated();
  if (failed_.load()) c->active = false;
  return true;
}

void frame_state::function_failed(const item& i, const error& e) const {
  const node_label& n = c_.label(i);
  const std::string& caller = n.name;
  std::string_view within = e.node();
  // The body is mostly written in the name scopes of its caller, which are said once.
  const std::string_view scopes = std::string_view(caller).substr(0, caller.rfind('/') + 1);
  if (within.starts_with(scopes)) within.remove_prefix(scopes.size());
  const bool placed = e.where().known();
  throw e.with_node(str(caller, within.empty() ? "" : "/", within), placed ? e.where() : n.location,
                    e.device().empty() ? to_string(*c_.device(i).info().name) : e.device());
}

}  // namespace deft::ext::exec
