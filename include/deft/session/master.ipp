// SPDX-License-Identifier: Apache-2.0
// deft/session/master.ipp: making plans for several tasks, and running their steps.
#pragma once
#include <algorithm>
#include <deft/execute/team.hpp>
#include <deft/op/dataflow.hpp>
#include <deft/session/master.hpp>
#include <deft/session/planning.hpp>
#include <deft/session/worker.ipp>
#include <set>

namespace deft {
namespace {

struct master_state {
  std::shared_ptr<task_runtime> self;
  std::shared_ptr<worker> cluster;  ///< null: this task alone
  session_options options;
  std::uint64_t session = random_incarnation();
  std::atomic<std::uint64_t> next_step{0}, next_handle{0};
  std::atomic<bool> closed{false};
  std::mutex guard;
  std::map<const device_name*, std::uint64_t> incarnations;  ///< of the tasks it has talked to
  std::map<const device_name*, std::vector<device_info>> devices;

  deadline patience() const { return deadline_in(options.connect_timeout); }

  /// The channel to a task. Throws aborted if the task has restarted since the session began.
  std::shared_ptr<channel> link(const device_name* task) {
    auto c = cluster->link(*task, patience());
    std::lock_guard lock(guard);
    auto [at, fresh] = incarnations.emplace(task, c->peer().incarnation);
    if (at->second != c->peer().incarnation)
      fail(errc::aborted, to_string(*task), " at ", c->address(),
           " has restarted: what it kept for this session is lost");
    return c;
  }

  const std::vector<device_info>& devices_of(const device_name* task) {
    {
      std::lock_guard lock(guard);
      auto at = devices.find(task);
      if (at != devices.end()) return at->second;
    }
    std::vector<device_info> list;
    if (*task == self->name()) {
      list = self->devices();
    } else {
      auto c = link(task);
      auto p = c->call(make_message(request::devices));
      if (!cluster->hub().wait_for(*p, patience())) {
        c->abandon(*p);
        fail(errc::deadline_exceeded, to_string(*task), " at ", c->address(), " does not answer");
      }
      from_bytes(p->get().meta, list);
    }
    std::lock_guard lock(guard);
    return devices.emplace(task, std::move(list)).first->second;
  }
};

/// A plan whose parts are registered on their tasks.
class master_plan final : public planned {
 public:
  master_plan(std::shared_ptr<master_state> m, prepared_plan p, std::size_t fetches)
      : master_(std::move(m)), placed_(std::move(p.placed)), fetches_(fetches) {
    const device_name* own = intern(master_->self->name());
    for (auto& part : p.parts) {
      remote r;
      r.task = part.task;
      r.handle = ++master_->next_handle;
      r.fetches = part.fetch_numbers;
      for (const auto& n : part.graph.nodes)
        if (n.op == &record_of<op::feed>)
          r.feeds.push_back(static_cast<std::uint32_t>(std::get<std::int64_t>(n.attributes[0])));
      if (part.task == own) {
        own_ = std::make_shared<frame_pool>(std::move(part), master_->self->resources());
        own_part_ = std::move(r);
      } else {
        r.part = std::move(part);
        others_.push_back(std::move(r));
      }
    }
    if (!others_.empty() && own_)
      master_->cluster->register_part(master_->session, own_part_.handle, own_->code().source(),
                                      this);
    for (auto& r : others_) register_at(r);
  }

  ~master_plan() override {
    if (others_.empty() || master_->closed) return;
    if (own_) master_->cluster->drop_part(master_->session, own_part_.handle);
    for (auto& r : others_) try {
        if (r.link && !r.link->lost())
          r.link->post(make_message(request::drop_part, master_->session, r.handle));
      } catch (const error&) {
        // A task that is lost has dropped it.
      }
  }

  step_results run(std::span<const feed_ref> feeds, const run_options& options) override {
    if (master_->closed) fail(errc::failed_precondition, "the session is closed");
    std::uint64_t step = ++master_->next_step;
    if (others_.empty()) return run_here(feeds, options, step);
    return run_everywhere(feeds, options, step);
  }

  std::size_t fetches() const override { return fetches_; }
  bool quick() const override { return others_.empty() && quick_; }
  const graph_def& placed() const override { return placed_; }
  std::vector<plan::part> parts() const override {
    std::vector<plan::part> all;
    if (own_) all.push_back(own_->code().source());
    for (const auto& r : others_) all.push_back(r.part);
    return all;
  }

 private:
  struct remote {
    const device_name* task = nullptr;
    std::uint64_t handle = 0;
    std::vector<std::uint32_t> feeds, fetches;
    plan::part part;
    std::shared_ptr<channel> link;
  };

  void register_at(remote& r) {
    r.link = master_->link(r.task);
    for (const auto& n : r.part.graph.nodes)
      if (!r.link->peer().knows(*n.op))
        throw error(errc::unimplemented,
                    str("[", n.op->name, "] is not known to ", r.link->peer(), " in version ",
                        n.op->version),
                    n.name, n.place);
    message m = make_message(request::register_part, master_->session, r.handle);
    out_archive(m.meta, &m.tensors) & r.part;
    r.link->post(m);
  }

  step_results run_here(std::span<const feed_ref> feeds, const run_options& options,
                        std::uint64_t step) {
    auto frame = own_->take();
    feed_ref few[8];
    std::vector<feed_ref> many;
    feed_ref* mine = few;
    auto wanted = own_->code().feeds();
    if (wanted.size() > 8) many.resize(wanted.size()), mine = many.data();
    for (std::size_t i = 0; i < wanted.size(); ++i) mine[i] = feeds[wanted[i]];
    // Values are returned in the order of fetches: a part that has all of them keeps that order.
    try {
      if (timed_.load(std::memory_order_relaxed) < 2) {
        auto begin = std::chrono::steady_clock::now();
        frame->start({mine, wanted.size()}, {step}, nullptr, options.cancel.get());
        quick_ = std::chrono::steady_clock::now() - begin < quick_limit;
        ++timed_;
      } else {
        frame->start({mine, wanted.size()}, {step}, nullptr, options.cancel.get());
      }
    } catch (...) {
      own_->give_back(std::move(frame));
      throw;
    }
    return step_results(std::move(frame), &frame_pool::return_to, own_.get());
  }

  struct step_state {
    std::mutex guard;
    step_outcome own;
    std::atomic<bool> own_done{false};
  };

  step_results run_everywhere(std::span<const feed_ref> feeds, const run_options& options,
                              std::uint64_t step) {
    auto timeout = options.timeout.count() ? options.timeout : master_->options.timeout;
    deadline until = timeout.count() ? deadline_in(timeout) : no_deadline;
    auto state = std::make_shared<step_state>();
    std::vector<std::shared_ptr<pending>> calls;
    std::shared_ptr<const error> failure;
    try {
      for (auto& r : others_) {
        if (r.link->lost()) register_at(r);
        message m = make_message(request::run_part, master_->session, step);
        m.meta = to_bytes(r.handle);
        for (auto f : r.feeds) m.tensors.push_back(as_array(feeds[f]));
        calls.push_back(r.link->call(m));
      }
    } catch (const error& e) {
      failure = std::make_shared<const error>(e);
      calls.resize(others_.size());
    }
    hub& h = master_->cluster->hub();
    if (!own_ || failure) {
      state->own_done = true;
    } else {
      std::vector<feed_ref> mine;
      for (auto f : own_->code().feeds()) mine.push_back(feeds[f]);
      master_->cluster->run_part(master_->session, step, own_part_.handle, std::move(mine),
                                 [state, &h](step_outcome o) {
                                   {
                                     std::lock_guard lock(state->guard);
                                     state->own = std::move(o);
                                   }
                                   state->own_done = true;
                                   h.notify();
                                 });
    }
    auto failed = [&] {
      if (failure) return true;
      if (options.cancel && options.cancel->load(std::memory_order_relaxed)) return true;
      if (state->own_done && state->own.failure) return true;
      return std::ranges::any_of(calls, [](const auto& c) { return c->failed(); });
    };
    auto done = [&] {
      return state->own_done.load() &&
             std::ranges::all_of(calls, [](const auto& c) { return c->done(); });
    };
    bool in_time = h.wait_until([&] { return failed() || done(); }, until);
    if (in_time && !failed()) return collect(*state, calls);
    fail_step(*state, calls, step, std::move(failure), in_time, options);
  }

  /// Stops every part, waits for the own one, and throws the first root error.
  [[noreturn]] void fail_step(step_state& state, std::vector<std::shared_ptr<pending>>& calls,
                              std::uint64_t step, std::shared_ptr<const error> failure,
                              bool in_time, const run_options& options) {
    std::string missing;
    std::shared_ptr<const error> cancelled;
    auto consider = [&](const error& e) {
      auto& into = e.code() == errc::cancelled ? cancelled : failure;
      if (!into) into = std::make_shared<const error>(e);
    };
    {
      std::lock_guard lock(state.guard);
      if (state.own.failure) consider(*state.own.failure);
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!calls[i]) continue;
      if (calls[i]->failed()) try {
          calls[i]->get();
        } catch (const error& e) {
          consider(e);
        }
      else if (!calls[i]->done())
        missing += str(missing.empty() ? "" : ", ", to_string(*others_[i].task));
    }
    for (std::size_t i = 0; i < others_.size(); ++i) try {
        if (calls[i] && others_[i].link && !others_[i].link->lost()) {
          if (!calls[i]->done()) others_[i].link->abandon(*calls[i]);
          others_[i].link->post(make_message(request::cancel_step, master_->session, step));
        }
      } catch (const error&) {
        // Lost in the meantime.
      }
    if (own_) {
      master_->cluster->cancel(master_->session, step);
      master_->cluster->hub().wait_until([&] { return state.own_done.load(); });
    }
    if (state.own.frame) state.own.pool->give_back(std::move(state.own.frame));
    if (failure) throw *failure;
    if (!in_time)
      fail(errc::deadline_exceeded, "the step took longer than it may; it waits for ",
           missing.empty() ? to_string(master_->self->name()) : missing);
    if (options.cancel && options.cancel->load()) fail(errc::cancelled, "the run was cancelled");
    if (cancelled) throw *cancelled;
    fail(errc::internal, "a step failed without an error");
  }

  step_results collect(step_state& state, std::vector<std::shared_ptr<pending>>& calls) {
    std::vector<any_array> values(fetches_);
    if (own_) {
      for (std::size_t i = 0; i < own_part_.fetches.size(); ++i)
        values[own_part_.fetches[i]] = state.own.frame->take(i);
      state.own.pool->give_back(std::move(state.own.frame));
    }
    for (std::size_t c = 0; c < calls.size(); ++c) {
      message& m = calls[c]->get();
      std::size_t next = 0;
      const remote& r = others_[c];
      for (std::size_t i = 0; i < r.fetches.size(); ++i) {
        auto e = r.part.fetches[i];
        if (r.part.graph.nodes[e.node].outputs.empty()) continue;
        if (next >= m.tensors.size())
          fail(errc::internal, to_string(*r.task), " answered with too few values");
        const tensor_type& t = r.part.graph.nodes[e.node].outputs[e.port];
        any_array& v = m.tensors[next++];
        if (v.type() != t.type || !fits(t.shape, v.shape()))
          fail(errc::internal, to_string(*r.task), " answered with ", v.type(), v.shape(), ", not ",
               t);
        values[r.fetches[i]] = std::move(v);
      }
    }
    return step_results(std::move(values));
  }

  static any_array as_array(const feed_ref& f) {
    if (f.keep) return any_array(f.type, f.shape, f.keep);
    return any_array::view(f.type, f.shape, f.data).clone();
  }

  std::shared_ptr<master_state> master_;
  graph_def placed_;
  std::size_t fetches_;
  static constexpr std::chrono::microseconds quick_limit{50};
  std::atomic<int> timed_{0};
  std::atomic<bool> quick_{false};  ///< the second run took less than the limit
  std::shared_ptr<frame_pool> own_;
  remote own_part_;
  std::vector<remote> others_;
};

class master_engine final : public engine {
 public:
  explicit master_engine(std::shared_ptr<master_state> m) : master_(std::move(m)) {}
  ~master_engine() override { master_engine::close(); }

  std::shared_ptr<planned> make_plan(flat_graph flat) override {
    if (master_->closed) fail(errc::failed_precondition, "the session is closed");
    std::size_t fetches = flat.fetches.size();
    std::vector<device_info> there = devices_for(flat.graph);
    auto parts = make_parts(std::move(flat), there, master_->self->name(), master_->options);
    return std::make_shared<master_plan>(master_, std::move(parts), fetches);
  }

  std::vector<device_info> devices() override {
    std::vector<device_info> all;
    for (auto* task : tasks())
      for (const auto& d : master_->devices_of(task)) all.push_back(d);
    return all;
  }

  void close() override {
    if (master_->closed.exchange(true) || !master_->cluster) return;
    master_->cluster->drop_session(master_->session);
    std::lock_guard lock(master_->guard);
    for (const auto& [task, incarnation] : master_->incarnations) try {
        auto c = master_->cluster->link(*task, deadline::min());
        if (c->peer().incarnation == incarnation)
          c->post(make_message(request::drop_session, master_->session));
      } catch (const error&) {
        // A task that is lost has dropped it.
      }
  }

  void reset(const std::string& container) override {
    for (auto* task : tasks()) {
      if (*task == master_->self->name()) {
        master_->self->variables().clear(container);
        continue;
      }
      message m = make_message(request::reset, master_->session);
      m.meta = to_bytes(container);
      auto p = master_->link(task)->call(m);
      if (!master_->cluster->hub().wait_for(*p, master_->patience()))
        fail(errc::deadline_exceeded, to_string(*task), " does not answer");
      p->take();
    }
  }

 private:
  std::vector<const device_name*> tasks() const {
    if (!master_->cluster || master_->cluster->cluster().empty())
      return {intern(master_->self->name())};
    std::vector<const device_name*> names;
    for (const auto& n : master_->cluster->cluster().task_names()) names.push_back(intern(n));
    return names;
  }

  /// Devices of the own task, and of those that the graph's requests name: only they are contacted.
  std::vector<device_info> devices_for(const graph_def& g) {
    std::set<const device_name*> wanted{intern(master_->self->name())};
    if (master_->cluster)
      for (const auto& n : g.nodes) {
        if (!n.requested || (n.requested->job.empty() && !n.requested->task)) continue;
        device_name task = n.requested->task_name();
        if (task.job.empty()) task.job = master_->self->name().job;
        if (!task.replica) task.replica = 0;
        if (!task.task)
          task.task = task.job == master_->self->name().job ? master_->self->name().task : 0;
        if (*task.task < master_->cluster->cluster().tasks(task.job)) wanted.insert(intern(task));
      }
    std::vector<device_info> all;
    for (auto* task : wanted)
      for (const auto& d : master_->devices_of(task)) all.push_back(d);
    std::ranges::sort(all, {}, [](const device_info& d) { return to_string(*d.name); });
    return all;
  }

  std::shared_ptr<master_state> master_;
};

}  // namespace

std::shared_ptr<engine> make_master(std::shared_ptr<task_runtime> self,
                                    std::shared_ptr<worker> cluster, session_options options) {
  if (options.intra_op_threads) set_intra_op_threads(options.intra_op_threads);
  auto m = std::make_shared<master_state>();
  m->self = std::move(self);
  m->cluster = std::move(cluster);
  m->options = std::move(options);
  return std::make_shared<master_engine>(std::move(m));
}

}  // namespace deft
