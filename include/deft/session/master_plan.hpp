// SPDX-License-Identifier: Apache-2.0
// deft/session/master_plan.hpp: a master's plan: its parts on their tasks, and its steps.
#pragma once
#include <algorithm>
#include <deft/core/log.hpp>
#include <deft/execute/frame_pool.hpp>
#include <deft/op/plan/feed.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/protocol.hpp>
#include <deft/session/watchdog.hpp>
#include <deft/session/worker.hpp>
#include <map>
#include <optional>
#include <set>

namespace deft {

/// What a master and its plans share.
struct master_state {
  std::shared_ptr<task_runtime> self;
  std::shared_ptr<worker> cluster;  ///< null: this task alone
  session_options options;
  std::uint64_t session = random_incarnation();
  std::atomic<std::uint64_t> next_step{0}, next_handle{0};
  std::stop_source closing;
  std::mutex guard;
  /// Of the tasks it has talked to, or that this task had a link to when the session was made.
  std::map<placement, std::uint64_t> incarnations;
  std::map<placement, std::vector<device_info>> devices;

  bool closed() const { return closing.stop_requested(); }
  /// Throws unavailable if the task was stopped, which closes the sessions too;
  /// failed_precondition if the session is closed.
  void check_open() const {
    if (cluster && cluster->stopped()) throw cluster->stopped_error();
    if (closed()) fail(errc::failed_precondition, "the session is closed");
  }

  deadline patience() const { return deadline_in(options.connect_timeout); }

  /// The channel to a task: one that was there a moment ago is not waited for long.
  /// Throws aborted if it has restarted since the session began; all errors name it.
  std::shared_ptr<channel> link(placement task, deadline until = no_deadline) {
    std::uint64_t known = 0;
    {
      std::lock_guard lock(guard);
      auto at = incarnations.find(task);
      if (at != incarnations.end()) known = at->second;
    }
    std::shared_ptr<channel> c;
    try {
      deadline most = known ? deadline_in(worker::reconnect_time) : patience();
      c = cluster->link(task, std::min(until, most), known);
    } catch (const error& e) {
      if (e.code() == errc::aborted)
        throw error(e.code(), e.message() + ": what it kept for this session is lost");
      if (known && e.code() == errc::deadline_exceeded) throw error(errc::unavailable, e.message());
      throw;
    }
    std::lock_guard lock(guard);
    incarnations.emplace(task, c->peer().incarnation);
    return c;
  }

  /// Connects to those of `tasks` that it has not talked to yet, all against one deadline. Throws
  /// deadline_exceeded with the names of all that are missing, cancelled if asked to.
  void reach(const std::set<placement>& tasks, const plan_limits& limits) {
    using namespace std::chrono_literals;
    const deadline until = std::min(limits.until, patience()), tell = deadline_in(1s);
    std::vector<placement> missing;
    {
      std::lock_guard lock(guard);
      for (auto t : tasks)
        if (*t != self->name() && !incarnations.contains(t)) missing.push_back(t);
    }
    bool told = false;
    for (std::chrono::nanoseconds turn = 250ms; !missing.empty();
         turn = std::min<std::chrono::nanoseconds>(2 * turn, 1s)) {
      std::string reasons;
      std::erase_if(missing, [&](placement t) {
        auto failure = caught([&] { link(t, std::min(until, deadline_in(turn))); });
        if (!failure) return true;
        if (failure->code() != errc::deadline_exceeded) throw error(*failure);
        reasons += str(reasons.empty() ? "" : "; ", failure->message());
        return false;
      });
      if (missing.empty()) return;
      if (cluster->stopped()) throw cluster->stopped_error();
      if (closed()) fail(errc::cancelled, "the session was closed");
      if (limits.cancelled()) fail(errc::cancelled, "the run was cancelled");
      const auto now = std::chrono::steady_clock::now();
      if (now >= until) fail(errc::deadline_exceeded, "waited in vain for ", reasons);
      if (!told && now >= tell) logging::warning("waiting for ", reasons), told = true;
    }
  }

  /// Calls a task and waits for the answer.
  message ask(placement task, message&& m) {
    auto c = link(task);
    auto p = c->call(m);
    if (!cluster->hub().wait_until([&] { return p->done() || cluster->stopped(); }, patience())) {
      c->abandon(*p);
      fail(errc::deadline_exceeded, *task, " at ", c->address(), " does not answer");
    }
    if (cluster->stopped()) throw cluster->stopped_error();
    return p->take();
  }

  const std::vector<device_info>& devices_of(placement task) {
    {
      std::lock_guard lock(guard);
      auto at = devices.find(task);
      if (at != devices.end()) return at->second;
    }
    std::vector<device_info> list;
    if (*task == self->name()) {
      list = self->devices();
    } else {
      from_bytes(ask(task, make_message(request::devices)).meta, list);
    }
    std::lock_guard lock(guard);
    return devices.emplace(task, std::move(list)).first->second;
  }
};

/// A plan whose parts are registered on their tasks.
class master_plan final : public planned {
 public:
  master_plan(std::shared_ptr<master_state> m, std::vector<plan::part> parts, std::size_t fetches)
      : master_(std::move(m)), closing_(master_->closing.get_token()), fetches_(fetches) {
    placement own = intern(master_->self->name());
    for (auto& part : parts) {
      remote r;
      r.task = part.task;
      r.handle = ++master_->next_handle;
      r.fetches = part.fetch_numbers;
      for (const auto& n : part.graph.nodes)
        if (n.op->role == op_role::feed) {
          const auto number = decode<op::feed>(n.attributes).index;
          r.feeds.push_back(static_cast<std::uint32_t>(number));
          feeds_ = std::max(feeds_, static_cast<std::size_t>(number) + 1);
        }
      r.part = std::move(part);
      r.part.stream = *master_->options.stream;
      if (r.task == own)
        own_part_ = std::move(r);
      else
        others_.push_back(std::move(r));
    }
    if (!others_.empty()) return;
    own_ = std::make_shared<frame_pool>(std::move(own_part_.part), master_->self->resources());
    for (std::size_t i = 0; i < own_part_.feeds.size(); ++i)
      feeds_in_order_ &= own_part_.feeds[i] == i;
  }

  /// Once it stands: if this fails, the destructor takes back what was registered.
  void register_parts() {
    if (others_.empty()) return;
    for (auto& r : others_) {
      r.link = master_->link(r.task);
      incarnations_.emplace_back(to_string(*r.task), r.link->peer().incarnation);
    }
    if (own_part_.task) {
      incarnations_.emplace_back(to_string(master_->self->name()), master_->self->incarnation());
      master_->cluster->register_part(master_->session, own_part_.handle, std::move(own_part_.part),
                                      incarnations_, nullptr);
    }
    for (auto& r : others_) register_at(r);
  }

  ~master_plan() override {
    if (others_.empty() || master_->closed()) return;
    if (own_part_.task) master_->cluster->drop_part(master_->session, own_part_.handle);
    for (auto& r : others_) try {
        if (r.link && !r.link->lost())
          r.link->post(make_message(request::drop_part, master_->session, r.handle));
      } catch (const error&) {
        // A task that is lost has dropped it.
      }
  }

  step_results run(std::span<const feed_ref> feeds, const run_options& options) override {
    master_->check_open();
    if (feeds.size() < feeds_)
      fail(errc::invalid_argument, "the step takes ", feeds_, " feeds, and got ", feeds.size());
    std::uint64_t step = ++master_->next_step;
    if (others_.empty()) return run_here(feeds, options, step);
    return run_everywhere(feeds, options, step);
  }

  std::size_t fetches() const override { return fetches_; }
  bool quick() const override { return others_.empty() && quick_; }

 private:
  struct remote {
    placement task;
    std::uint64_t handle = 0;
    std::vector<std::uint32_t> feeds, fetches;
    plan::part part;
    std::shared_ptr<channel> link;
  };

  void register_at(remote& r) {
    for (const auto& n : r.part.graph.nodes)
      if (!r.link->peer().knows(*n.op))
        throw error(errc::unimplemented,
                    str("[", n.op->name, "] is not known to ", r.link->peer(), " in version ",
                        n.op->version),
                    n.name, n.place);
    message m = make_message(request::register_part, master_->session, r.handle);
    out_archive(m.meta, &m.tensors) & r.part& incarnations_;
    r.link->post(m);
  }

  /// The channel to part `r`'s task; where it was lost, a new one on which the part is registered.
  std::shared_ptr<channel> link_of(remote& r, deadline until) {
    std::lock_guard lock(guard_);
    if (r.link->lost()) {
      r.link = master_->link(r.task, until);
      register_at(r);
    }
    return r.link;
  }

  deadline deadline_of(const run_options& options) const {
    auto timeout = options.timeout.count() ? options.timeout : master_->options.timeout;
    return timeout.count() ? deadline_in(timeout) : no_deadline;
  }

  step_results run_here(std::span<const feed_ref> feeds, const run_options& options,
                        std::uint64_t step) {
    // As a rule the part takes all feeds in their order.
    std::vector<feed_ref> reordered;
    if (!feeds_in_order_) {
      for (auto f : own_part_.feeds) reordered.push_back(feeds[f]);
      feeds = reordered;
    }
    std::optional<watched> watch;
    deadline until = deadline_of(options);
    if (until != no_deadline || options.cancel)
      watch.emplace(until, options.cancel.get(), closing_);
    const std::stop_token stopped = watch ? watch->stop() : std::stop_token();
    const step_context context{.step = step,
                               .draw = draw_counter(*master_->options.stream, step),
                               .stop = watch ? stopped : closing_};
    std::unique_ptr<executable::frame> frame;
    // Values are returned in the order of fetches: a part that has all of them keeps that order.
    try {
      frame = own_->take();
      if (timed_.load(std::memory_order_relaxed) < 2) {
        auto begin = std::chrono::steady_clock::now();
        frame->run(feeds, context);
        quick_ = std::chrono::steady_clock::now() - begin < quick_limit;
        ++timed_;
      } else {
        frame->run(feeds, context);
      }
    } catch (const error& e) {
      if (frame) own_->give_back(std::move(frame));
      if (e.code() != errc::cancelled) throw;
      if (watch && watch->late())
        throw error(errc::deadline_exceeded,
                    str("the step took longer than it may on ", to_string(master_->self->name())),
                    e.node(), e.where(), e.device());
      if (master_->cluster && master_->cluster->stopped()) throw master_->cluster->stopped_error();
      throw error(errc::cancelled,
                  master_->closed() ? "the session was closed" : "the run was cancelled", e.node(),
                  e.where(), e.device());
    } catch (const std::bad_alloc&) {
      fail(errc::resource_exhausted, to_string(master_->self->name()), " is out of memory");
    }
    return step_results(std::move(frame), &frame_pool::return_to, own_);
  }

  /// One step through all parts.
  struct step_state {
    std::vector<std::shared_ptr<channel>> links;
    std::vector<std::shared_ptr<pending>> calls;  ///< null: not made
    std::shared_ptr<const error> failure;         ///< of making them
    std::mutex guard;
    step_outcome own;
    std::atomic<bool> own_done{true};
    bool borrows = false;  ///< messages may refer to memory of the caller

    bool failed() {
      return failure || (own_done && own.failure) ||
             std::ranges::any_of(calls, [](const auto& c) { return c->failed(); });
    }
    bool done() {
      return own_done && std::ranges::all_of(calls, [](const auto& c) { return c->done(); });
    }
  };

  step_results run_everywhere(std::span<const feed_ref> feeds, const run_options& options,
                              std::uint64_t step) {
    deadline until = deadline_of(options);
    auto state = std::make_shared<step_state>();
    state->calls.resize(others_.size());
    state->links.resize(others_.size());
    state->failure = caught([&] {
      for (std::size_t i = 0; i < others_.size(); ++i) {
        remote& r = others_[i];
        state->links[i] = link_of(r, until);
        message m = make_message(request::run_part, master_->session, step);
        m.meta = to_bytes(r.handle);
        for (auto f : r.feeds) m.tensors.push_back(fed_array(feeds[f], state->borrows));
        state->calls[i] = state->links[i]->call(m);
      }
    });
    if (own_part_.task && !state->failure) run_own_part(feeds, step, state);
    auto over = [&] {
      return state->failed() || state->done() || is_cancelled(options) || master_->closed() ||
             master_->cluster->stopped();
    };
    hub& h = master_->cluster->hub();
    bool in_time = false;
    if (options.cancel) {
      // Nobody tells the hub when the flag is set.
      constexpr auto look = std::chrono::milliseconds(2);
      while (!(in_time = h.wait_until(over, std::min(until, deadline_in(look)))))
        if (std::chrono::steady_clock::now() >= until) break;
    } else {
      constexpr auto long_wait = std::chrono::seconds(10);
      in_time = h.wait_until(over, std::min(until, deadline_in(long_wait)));
      if (!in_time && std::chrono::steady_clock::now() < until) {
        logging::warning("step ", step, " still waits for ", missing_from(*state));
        in_time = h.wait_until(over, until);
      }
    }
    if (in_time && !state->failed() && state->done()) return collect(*state);
    fail_step(*state, step, in_time, options);
  }

  void run_own_part(std::span<const feed_ref> feeds, std::uint64_t step,
                    const std::shared_ptr<step_state>& state) {
    std::vector<feed_ref> mine;
    for (auto f : own_part_.feeds) mine.push_back(feeds[f]);
    state->own_done = false;
    // The worker outlives the call: whoever ends the step holds it.
    hub& h = master_->cluster->hub();
    master_->cluster->run_part(master_->session, step, own_part_.handle, std::move(mine), nullptr,
                               [state, &h](step_outcome o) {
                                 {
                                   std::lock_guard lock(state->guard);
                                   state->own = std::move(o);
                                 }
                                 state->own_done = true;
                                 h.notify();
                               });
  }

  static bool is_cancelled(const run_options& options) {
    return options.cancel && options.cancel->load(std::memory_order_relaxed);
  }

  /// The tasks whose parts have not ended.
  std::string missing_from(const step_state& state) const {
    std::vector<placement> tasks;
    if (!state.own_done) tasks.push_back(intern(master_->self->name()));
    for (std::size_t i = 0; i < others_.size(); ++i)
      if (const auto& c = state.calls[i]; !c || !c->done()) tasks.push_back(others_[i].task);
    return join(tasks, ", ", [](placement t) { return to_string(*t); });
  }

  /// Stops every part, waits for the own one, and throws the first root error.
  [[noreturn]] void fail_step(step_state& state, std::uint64_t step, bool in_time,
                              const run_options& options) {
    const std::string missing = missing_from(state);
    std::shared_ptr<const error> cancelled, failure = state.failure;
    auto consider = [&](const error& e) {
      auto& into = e.code() == errc::cancelled ? cancelled : failure;
      if (!into) into = std::make_shared<const error>(e);
    };
    if (state.own_done && state.own.failure) consider(*state.own.failure);
    for (std::size_t i = 0; i < others_.size(); ++i) {
      const auto& c = state.calls[i];
      if (c && c->failed()) try {
          c->get();
        } catch (const error& e) {
          consider(e);
        }
    }
    // Those that were not called too: values may have come for them.
    for (std::size_t i = 0; i < others_.size(); ++i) try {
        auto link =
            state.links[i] ? state.links[i] : master_->cluster->standing_link(others_[i].task);
        if (!link || link->lost()) continue;
        if (state.calls[i] && !state.calls[i]->done()) link->abandon(*state.calls[i]);
        link->post(make_message(request::cancel_step, master_->session, step));
        if (state.borrows && !link->drain(deadline_in(std::chrono::seconds(1)))) link->close();
      } catch (const error&) {
        // Lost in the meantime.
      }
    if (own_part_.task) {
      master_->cluster->cancel(master_->session, step);
      master_->cluster->hub().wait_until([&] { return state.own_done.load(); });
      if (state.own.frame) state.own.pool->give_back(std::move(state.own.frame));
    }
    if (master_->cluster->stopped()) throw master_->cluster->stopped_error();
    if (failure) throw error(*failure);
    if (master_->closed()) fail(errc::cancelled, "the session was closed");
    if (!in_time)
      fail(errc::deadline_exceeded, "the step took longer than it may; it waits for ", missing);
    if (is_cancelled(options)) fail(errc::cancelled, "the run was cancelled");
    if (cancelled) throw error(*cancelled);
    fail(errc::internal, "a step failed without an error");
  }

  step_results collect(step_state& state) {
    std::vector<any_array> values(fetches_);
    if (own_part_.task) {
      for (std::size_t i = 0; i < own_part_.fetches.size(); ++i)
        values[own_part_.fetches[i]] = state.own.frame->take(i);
      state.own.pool->give_back(std::move(state.own.frame));
    }
    for (std::size_t c = 0; c < others_.size(); ++c) {
      message& m = state.calls[c]->get();
      std::size_t next = 0;
      const remote& r = others_[c];
      for (std::size_t i = 0; i < r.fetches.size(); ++i) {
        auto e = r.part.fetches[i];
        if (e.port == run_only) continue;
        if (next >= m.tensors.size())
          fail(errc::internal, to_string(*r.task), " answered with too few values");
        any_array& v = m.tensors[next++];
        check_answer(v, r.part.graph.nodes[e.node].outputs[e.port], *r.task);
        values[r.fetches[i]] = std::move(v);
      }
    }
    return step_results(std::move(values));
  }

  std::shared_ptr<master_state> master_;
  const std::stop_token closing_;
  std::size_t fetches_;
  std::size_t feeds_ = 0;       ///< one more than the highest number that is used
  bool feeds_in_order_ = true;  ///< the own part takes them as they come
  static constexpr std::chrono::microseconds quick_limit{50};
  std::atomic<int> timed_{0};
  std::atomic<bool> quick_{false};   ///< the second run took less than the limit
  std::shared_ptr<frame_pool> own_;  ///< where there are no others
  remote own_part_;                  ///< without a task: this one has nothing to do
  std::mutex guard_;                 ///< of the links of others_
  std::vector<remote> others_;
  incarnation_list incarnations_;
};

}  // namespace deft
