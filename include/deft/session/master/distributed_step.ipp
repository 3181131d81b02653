// SPDX-License-Identifier: Apache-2.0
// deft/session/master/distributed_step.ipp: runs one step of a plan on all of its tasks.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/master/master_plan.hpp>
#include <deft/session/threads/watchdog.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/values.hpp>
#include <optional>

namespace deft::ext {

/// One step: the calls to the other tasks, and this task's own part. It never blocks: every event
/// calls check_finished(), and the thread whose event was the last one ends the step.
class master_plan::distributed_step final : public session_events,
                                            public std::enable_shared_from_this<distributed_step> {
 public:
  distributed_step(std::shared_ptr<master_plan> plan, std::span<const feed_ref> feeds,
                   const run_options& options, run_callback done)
      : plan_(std::move(plan)),
        tasks_(*plan_->tasks_),
        feeds_(feeds),
        trace_(options.trace),
        number_to_(options.step),
        done_(std::move(done)),
        links_(plan_->others_.size()),
        calls_(plan_->others_.size()),
        called_(calls_.size()),
        answers_(calls_.size(), part_answer(*this)),
        unanswered_(calls_.size()) {}
  ~distributed_step() override { end_step(); }

  /// Starts the step, which calls `done` once, whatever happens. `watch`: it expires by itself at
  /// `until`; otherwise its caller calls expire().
  void begin(std::stop_token cancel, deadline until, bool watch) noexcept {
    until_ = until;
    cancel_ = std::move(cancel);
    auto failure = failure_of([&] { start(watch); });
    if (!failure) return;
    {
      std::lock_guard lock(guard_);
      if (!failure_) failure_ = std::move(failure);
    }
    check_finished();
  }

  /// The time for the step is over.
  void expire() {
    late_ = true;
    check_finished();
  }

  void on_channel_lost() override { check_finished(); }

  void on_link_lost(const wire::link_lost& l) override {
    {
      std::lock_guard lock(guard_);
      if (l.step < number_) return;
      losses_.push_back(l);  // may arrive before all tasks are called
    }
    check_finished();
  }

  void warn_of_long_runs() override {
    constexpr auto long_time = std::chrono::seconds(10);
    std::lock_guard lock(guard_);
    if (warned_ || state_ == state::over || std::chrono::steady_clock::now() - began_ < long_time)
      return;
    warned_ = true;
    logging::warning("run ", number_, " of a session is still waiting for ", missing());
  }

  /// After a failed run: no message refers to the caller's memory any more.
  void copy_borrowed() {
    if (!borrows_) return;
    for (const auto& link : links_)
      if (link) link->copy_borrowed();
  }

 private:
  /// `failing`: the step has failed, and waits for the own part to end.
  enum class state { linking, sending, running, failing, over };

  /// How the own part ended.
  struct own_part {
    step_outcome outcome;
    bool begun = false;
    std::atomic<bool> done{true};
  };

  /// The answer of a task. It lives as long as the step.
  struct part_answer final : answer_listener {
    distributed_step* step;
    wire::values values = {};  ///< of the fetches

    explicit part_answer(distributed_step& s) : step(&s) {}
    void on_answer(message& m) override {
      values = wire::unpack<wire::values>(m);
      if (!values.keys.empty()) step->take_own(values);
    }
    /// Only a failure, or the last answer, can end the step.
    void answered(pending& p) override {
      if (--step->unanswered_ == 0 || p.failed()) step->check_finished();
    }
  };

  /// Takes the values for the own part out of an answer.
  void take_own(wire::values& v) {
    if (!plan_->own_part_.task)
      fail(errc::data_loss, "an answer has values for a part that this task does not have");
    const auto first = v.tensors.end() - static_cast<std::ptrdiff_t>(v.keys.size());
    wire::tensors own{tasks_.session(), number_, std::exchange(v.keys, {}), {}};
    own.values.assign(std::move_iterator(first), std::move_iterator(v.tensors.end()));
    v.tensors.erase(first, v.tensors.end());
    tasks_.cluster()->deliver(std::move(own), nullptr);
  }

  bool stop_asked() const {
    return late_ || cancel_.stop_requested() || tasks_.closed() || tasks_.cluster()->stopped();
  }
  bool failed() const {
    return failure_ || (own_.done && own_.outcome.failure) ||
           std::ranges::any_of(calls_, [](const auto& c) { return c && c->failed(); });
  }
  bool done() const { return own_.done && unanswered_ == 0; }

  void start(bool watch) {
    ended_ = false;
    tasks_.begin_step(weak_from_this(), number_, ended_below_);
    if (number_to_) *number_to_ = number_;
    if (plan_->draws_) draw_ = tasks_.next_draw();
    const auto look = [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->check_finished();
    };
    on_close_.emplace(tasks_.closing(), look);
    if (cancel_.stop_possible()) on_cancel_.emplace(cancel_, look);
    if (watch) {
      watch_.emplace(until_, std::stop_token(), std::stop_token());
      on_time_.emplace(watch_->stop(), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->expire();
      });
    }
    // Notices connections that have ended while nothing was sent: otherwise the parts before such a
    // task would run, and those after it would not.
    tasks_.cluster()->channels().poll();
    // All links come first: a part may send values to another only once that one is registered.
    std::vector<std::size_t> lost;
    {
      std::lock_guard lock(guard_);
      for (std::size_t i = 0; i < links_.size(); ++i)
        if (!(links_[i] = plan_->standing_link(plan_->others_[i]))) lost.push_back(i);
      unlinked_ = lost.size();
    }
    if (lost.empty()) return send();
    for (auto i : lost)
      plan_->relink(plan_->others_[i], until_,
                    [self = shared_from_this(), i](std::shared_ptr<channel> c,
                                                   std::shared_ptr<const error> failure) {
                      {
                        std::lock_guard lock(self->guard_);
                        if (failure && !self->failure_) self->failure_ = std::move(failure);
                        self->links_[i] = std::move(c);
                        if (--self->unlinked_ > 0 && !self->failure_) return;
                      }
                      self->failure_ ? self->check_finished() : self->send();
                    });
  }

  void send() {
    {
      std::lock_guard lock(guard_);
      if (state_ != state::linking) return;
      state_ = state::sending;
    }
    auto failure = failure_of([&] {
      for (std::size_t i = 0; i < calls_.size(); ++i) {
        const task_part& r = plan_->others_[i];
        wire::run_part m = order_of(r);
        for (auto f : r.feeds) m.feeds.push_back(fed_array(feeds_[f], borrows_));
        called_[i] = true;  // if the call throws, the message may have been written
        calls_[i] = links_[i]->call(
            wire::pack(m), std::shared_ptr<answer_listener>(shared_from_this(), &answers_[i]));
      }
      if (plan_->own_part_.task) run_own_part();
    });
    {
      std::lock_guard lock(guard_);
      state_ = state::running;
      if (!failure_) failure_ = std::move(failure);
    }
    check_finished();
  }

  void run_own_part() {
    const task_part& mine = plan_->own_part_;
    std::vector<feed_ref> own_feeds;
    for (auto f : mine.feeds) own_feeds.push_back(feeds_[f]);
    step_callback done = [self = shared_from_this()](step_outcome o) {
      self->own_.outcome = std::move(o);
      self->own_.done = true;
      self->check_finished();
    };
    own_.done = false;
    own_.begun = true;
    tasks_.cluster()->run_part(order_of(mine), std::move(own_feeds), nullptr, std::move(done));
  }

  wire::run_part order_of(const task_part& r) const {
    return {.session = tasks_.session(),
            .step = number_,
            .handle = r.registration.handle,
            .ended_below = ended_below_,
            .draw = draw_,
            .trace = trace_ != nullptr};
  }

  /// Ends the step if all parts are done, or if it has failed and the own part has ended.
  void check_finished() {
    bool fails_now = false, ends = false;
    {
      std::lock_guard lock(guard_);
      switch (state_) {
        case state::sending:  // send() looks afterwards
        case state::over:
          return;
        case state::failing:
          ends = own_.done;
          break;
        case state::linking:
        case state::running:
          if (state_ == state::running) consider_losses();
          ends = state_ == state::running && done();
          if (state_ == state::running && !ends) consider_lost_links();
          fails_now = failed() || stop_asked();
          if (fails_now) ends = own_.done;
          if (fails_now)
            if (const auto failure = failure_of([&] { failure_ = with_fate(first_error()); });
                failure && !failure_)
              failure_ = failure;
      }
      if (ends)
        state_ = state::over;
      else if (fails_now)
        state_ = state::failing;
    }
    if (fails_now) (void)failure_of([&] { cancel_parts(); });
    if (ends) finish();
  }

  void consider_losses() {
    for (const auto& l : losses_)
      if (!failure_ && takes_part(l.from, false) && takes_part(l.to, true))
        failure_ =
            make_failure(errc::unavailable, l.from, " lost ", l.to, " during the step: ", l.why);
    losses_.clear();
  }

  /// A task that has answered may have sent values that were lost; once its link is lost, it cannot
  /// report that.
  void consider_lost_links() {
    for (std::size_t i = 0; i < links_.size() && !failure_; ++i)
      if (links_[i]->lost() && calls_[i]->done() && !calls_[i]->failed())
        failure_ = failure_of([&] { throw error(errc::unavailable, links_[i]->why_lost()); });
  }

  /// The error that caused the others: cancellations come last.
  std::shared_ptr<const error> first_error() const {
    if (tasks_.cluster()->stopped())
      return std::make_shared<const error>(tasks_.cluster()->stopped_error());
    std::shared_ptr<const error> cancelled, failure = failure_;
    auto consider = [&](const error& e) {
      auto& into = e.code() == errc::cancelled ? cancelled : failure;
      if (!into) into = std::make_shared<const error>(e);
    };
    if (own_.done && own_.outcome.failure) consider(*own_.outcome.failure);
    for (const auto& c : calls_)
      if (c && c->failed()) try {
          c->get();
        } catch (const error& e) {
          consider(e);
        }
    if (failure) return failure;
    auto say = [](errc code, const std::string& text) {
      return std::make_shared<const error>(code, text);
    };
    if (tasks_.closed()) return say(errc::cancelled, "the session was closed");
    if (late_)
      return say(errc::deadline_exceeded,
                 str("the step timed out after ", duration_text(until_ - began_), waiting_for()));
    if (cancel_.stop_requested()) return say(errc::cancelled, "the run was cancelled");
    return cancelled ? cancelled : say(errc::internal, "the step failed without an error");
  }

  /// The tasks whose parts may have updated variables, and whether other parts with updates were
  /// never called.
  step_updates updates() const {
    step_updates all;
    const auto add = [&all](const task_part& p, placement task, bool called) {
      if (!p.updates) return;
      if (called)
        all.tasks.push_back(task);
      else
        all.known = step_fate::unchanged;
    };
    for (std::size_t i = 0; i < calls_.size(); ++i)
      add(plan_->others_[i], plan_->others_[i].task, called_[i]);
    add(plan_->own_part_, tasks_.self_name(), own_.begun);
    return all;
  }

  /// Adds a node that the lost task was to run, if `e` names none, and that the step may have been
  /// applied, if a part with updates was called.
  std::shared_ptr<const error> with_fate(std::shared_ptr<const error> e) const {
    if (e->code() != errc::unavailable && e->code() != errc::aborted) return e;
    if (const node_def* n = e->node().empty() ? node_on_lost_task() : nullptr)
      e = std::make_shared<const error>(e->with_node(n->name, n->location, to_string(*n->device)));
    if (updates().tasks.empty()) return e;
    return std::make_shared<const error>(perhaps_applied(*e));
  }
  const node_def* node_on_lost_task() const {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (!links_[i] || !links_[i]->lost()) continue;
      const auto& nodes = plan_->others_[i].registration.part.graph.nodes;
      const auto n =
          std::ranges::find_if(nodes, [](const node_def& d) { return d.location.known(); });
      if (n != nodes.end()) return &*n;
    }
    return nullptr;
  }

  /// Whether `task` has a part in the step; with `under_way`, one that was called and has not
  /// ended.
  bool takes_part(std::string_view task, bool under_way) const {
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (to_string(*plan_->others_[i].task) == task)
        return !under_way || (calls_[i] && !calls_[i]->done());
    return false;
  }

  /// The names of the tasks whose parts have not ended.
  std::string missing() const {
    std::vector<placement> names;
    if (!own_.done) names.push_back(tasks_.self_name());
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (const auto& c = calls_[i]; !c || !c->done()) names.push_back(plan_->others_[i].task);
    return join(names, ", ", [](placement t) { return to_string(*t); });
  }

  /// " waiting for …", empty if all parts have ended.
  std::string waiting_for() const {
    const std::string names = missing();
    return names.empty() ? names : " waiting for " + names;
  }

  void cancel_parts() {
    std::vector<std::shared_ptr<channel>> links;
    {
      std::lock_guard lock(guard_);
      links = links_;
    }
    // Tasks that were not called are told too: they may have received values.
    for (std::size_t i = 0; i < calls_.size(); ++i) try {
        const auto link =
            links[i] ? links[i] : tasks_.cluster()->links().standing(plan_->others_[i].task);
        if (!link || link->lost()) continue;
        if (calls_[i] && !calls_[i]->done()) link->abandon(*calls_[i]);
        link->post(wire::pack(wire::cancel_step{tasks_.session(), number_}));
      } catch (const std::exception&) {
        // The link was lost in the meantime, or there is no memory for the message.
      }
    if (plan_->own_part_.task) tasks_.cluster()->cancel(tasks_.session(), number_);
  }

  void finish() {
    run_outcome o;
    o.step = number_;
    if (!failure_) failure_ = failure_of([&] { o.results.emplace(collect()); });
    if (failure_) {
      o.results.reset();
      o.failure = failure_;
      // Without memory, whoever asks later is told that the step's fate is unknown.
      (void)failure_of([&] { tasks_.note_failure(number_, updates()); });
    }
    if (own_.outcome.frame) own_.outcome.pool->give_back(std::move(own_.outcome.frame));
    end_step();
    done_(std::move(o));
  }

  step_results collect() {
    std::vector<any_array> values(plan_->fetches_);
    if (trace_) trace_->events = std::move(own_.outcome.trace);
    const task_part& mine = plan_->own_part_;
    if (mine.task)
      for (std::size_t i = 0; i < mine.fetches.size(); ++i)
        values[mine.fetches[i]] = own_.outcome.frame->take(i);
    for (std::size_t c = 0; c < calls_.size(); ++c) {
      const task_part& r = plan_->others_[c];
      wire::values& answer = answers_[c].values;
      if (trace_) std::ranges::move(answer.trace, std::back_inserter(trace_->events));
      std::size_t next = 0;
      for (std::size_t i = 0; i < r.fetches.size(); ++i) {
        auto e = r.registration.part.fetches[i];
        if (e.port == run_only) continue;
        if (next >= answer.tensors.size())
          fail(errc::internal, to_string(*r.task), " answered with ", next,
               " values, fewer than were fetched");
        any_array& v = answer.tensors[next++];
        check_answer(v, r.registration.part.graph.nodes[e.node].outputs[e.port], *r.task);
        values[r.fetches[i]] = std::move(v);
      }
    }
    return step_results(std::move(values));
  }

  void end_step() {
    if (!std::exchange(ended_, true)) tasks_.end_step(number_);
  }

  const std::shared_ptr<master_plan> plan_;
  task_directory& tasks_;
  const std::span<const feed_ref> feeds_;
  step_trace* const trace_;         ///< null if the run is not traced
  std::uint64_t* const number_to_;  ///< null if the caller does not ask for it
  const run_callback done_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::uint64_t number_ = 0, ended_below_ = 0, draw_ = 0;
  bool ended_ = true;  ///< as the task directory knows
  deadline until_ = no_deadline;
  std::stop_token cancel_;
  std::atomic<bool> late_{false};

  std::mutex guard_;
  state state_ = state::linking;
  std::size_t unlinked_ = 0;
  std::shared_ptr<const error> failure_;  ///< why the step fails
  std::vector<wire::link_lost> losses_;   ///< not looked at yet: they may not concern this step
  std::vector<std::shared_ptr<channel>> links_;
  std::vector<std::shared_ptr<pending>> calls_;  ///< null if not made
  std::vector<bool> called_;                     ///< whether a call was tried
  std::vector<part_answer> answers_;             ///< to these calls
  std::atomic<std::size_t> unanswered_;
  own_part own_;
  bool borrows_ = false;  ///< messages may refer to the caller's memory
  bool warned_ = false;

  // Declared last, as they use all of the above.
  std::optional<watched> watch_;
  std::optional<std::stop_callback<std::function<void()>>> on_close_, on_cancel_, on_time_;
};

}  // namespace deft::ext
