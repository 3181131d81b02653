// SPDX-License-Identifier: Apache-2.0
// deft/session/master/distributed_step.ipp: one step through all parts of a plan.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/master/master_plan.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/values.hpp>

namespace deft {

/// The calls to the tasks, and the own part.
class master_plan::distributed_step {
 public:
  distributed_step(master_plan& plan, const run_options& options)
      : plan_(plan),
        tasks_(*plan.tasks_),
        options_(options),
        step_(tasks_),
        links_lost_(tasks_.cluster()->links_lost()),
        until_(plan.deadline_of(options)),
        links_(plan.others_.size()),
        calls_(plan.others_.size()) {}

  step_results run(std::span<const feed_ref> feeds) {
    call_tasks(feeds);
    if (plan_.own_part_.task && !failure_) run_own_part(feeds);
    const bool in_time = wait();
    if (in_time && !failed() && done()) return collect();
    fail_all(in_time);
  }

 private:
  /// What the own part's end is told; it may outlive the step.
  struct own_part {
    std::mutex guard;
    step_outcome outcome;
    std::atomic<bool> done{true};
  };

  bool failed() const {
    return failure_ || lost_value_ || (own_->done && own_->outcome.failure) ||
           std::ranges::any_of(calls_, [](const auto& c) { return c->failed(); });
  }
  bool done() const {
    return own_->done && std::ranges::all_of(calls_, [](const auto& c) { return c->done(); });
  }
  bool is_cancelled() const { return options_.cancel.stop_requested(); }

  void call_tasks(std::span<const feed_ref> feeds) {
    failure_ = failure_of([&] {
      // All before the first message: one part's values come to parts that are registered.
      for (std::size_t i = 0; i < calls_.size(); ++i)
        links_[i] = plan_.link_of(plan_.others_[i], until_);
      for (std::size_t i = 0; i < calls_.size(); ++i) {
        const task_part& r = plan_.others_[i];
        wire::run_part m{
            tasks_.session(), step_.number(), r.registration.handle, step_.ended_below(), {}};
        for (auto f : r.feeds) m.feeds.push_back(fed_array(feeds[f], borrows_));
        calls_[i] = links_[i]->call(wire::pack(m));
      }
    });
  }

  void run_own_part(std::span<const feed_ref> feeds) {
    const task_part& mine = plan_.own_part_;
    std::vector<feed_ref> own_feeds;
    for (auto f : mine.feeds) own_feeds.push_back(feeds[f]);
    own_->done = false;
    // The worker outlives the call: whoever ends the step holds it.
    hub& h = tasks_.cluster()->hub();
    tasks_.cluster()->run_part(tasks_.session(), step_.number(), mine.registration.handle,
                               step_.ended_below(), std::move(own_feeds), nullptr,
                               [own = own_, &h](step_outcome o) {
                                 {
                                   std::lock_guard lock(own->guard);
                                   own->outcome = std::move(o);
                                 }
                                 own->done = true;
                                 h.notify();
                               });
  }

  /// Until all have ended, or one has failed. False if the time was over first.
  bool wait() {
    auto over = [&] {
      look_for_lost_values();
      return failed() || done() || is_cancelled() || tasks_.closed() || tasks_.cluster()->stopped();
    };
    hub& h = tasks_.cluster()->hub();
    const std::stop_callback wake(options_.cancel, [&h] { h.notify(); });
    constexpr auto long_wait = std::chrono::seconds(10);
    if (h.wait_until(over, std::min(until_, deadline_in(long_wait)))) return true;
    if (std::chrono::steady_clock::now() >= until_) return false;
    logging::warning("step ", step_.number(), " still waits for ", missing());
    return h.wait_until(over, until_);
  }

  /// A task that has lost its connection to another may have sent what the other waits for.
  void look_for_lost_values() {
    const auto count = tasks_.cluster()->links_lost();
    if (lost_value_ || count == links_lost_) return;
    for (const auto& l : tasks_.cluster()->links_lost(tasks_.session(), links_lost_))
      if (l.step >= step_.number() && takes_part(l.from, false) && takes_part(l.to, true))
        lost_value_ = std::make_shared<const error>(
            errc::unavailable, str(l.from, " lost ", l.to, " during the step: ", l.why));
    links_lost_ = count;
  }
  bool takes_part(std::string_view task, bool under_way) const {
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (to_string(*plan_.others_[i].task) == task)
        return !under_way || (calls_[i] && !calls_[i]->done());
    return false;
  }

  /// The tasks whose parts have not ended.
  std::string missing() const {
    std::vector<placement> names;
    if (!own_->done) names.push_back(tasks_.self_name());
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (const auto& c = calls_[i]; !c || !c->done()) names.push_back(plan_.others_[i].task);
    return join(names, ", ", [](placement t) { return to_string(*t); });
  }

  /// Stops every part, waits for the own one, and throws the first root error.
  [[noreturn]] void fail_all(bool in_time) {
    const std::string waited_for = missing();
    std::shared_ptr<const error> cancelled, failure = failure_;
    if (!failure) failure = lost_value_;
    auto consider = [&](const error& e) {
      auto& into = e.code() == errc::cancelled ? cancelled : failure;
      if (!into) into = std::make_shared<const error>(e);
    };
    if (own_->done && own_->outcome.failure) consider(*own_->outcome.failure);
    for (const auto& c : calls_)
      if (c && c->failed()) try {
          c->get();
        } catch (const error& e) {
          consider(e);
        }
    cancel_parts();
    if (tasks_.cluster()->stopped()) throw tasks_.cluster()->stopped_error();
    if (failure) throw error(*failure);
    if (tasks_.closed()) fail(errc::cancelled, "the session was closed");
    if (!in_time)
      fail(errc::deadline_exceeded, "the step took longer than it may; it waits for ", waited_for);
    if (is_cancelled()) fail(errc::cancelled, "the run was cancelled");
    if (cancelled) throw error(*cancelled);
    fail(errc::internal, "a step failed without an error");
  }

  void cancel_parts() {
    // Those that were not called too: values may have come for them.
    for (std::size_t i = 0; i < calls_.size(); ++i) try {
        auto link =
            links_[i] ? links_[i] : tasks_.cluster()->links().standing(plan_.others_[i].task);
        if (!link || link->lost()) continue;
        if (calls_[i] && !calls_[i]->done()) link->abandon(*calls_[i]);
        link->post(wire::pack(wire::cancel_step{tasks_.session(), step_.number()}));
        if (borrows_ && !link->drain(deadline_in(std::chrono::seconds(1)))) link->close();
      } catch (const error&) {
        // Lost in the meantime.
      }
    if (!plan_.own_part_.task) return;
    tasks_.cluster()->cancel(tasks_.session(), step_.number());
    tasks_.cluster()->hub().wait_until([&] { return own_->done.load(); });
    step_outcome& o = own_->outcome;
    if (o.frame) o.pool->give_back(std::move(o.frame));
  }

  step_results collect() {
    std::vector<any_array> values(plan_.fetches_);
    const task_part& mine = plan_.own_part_;
    if (mine.task) {
      step_outcome& o = own_->outcome;
      for (std::size_t i = 0; i < mine.fetches.size(); ++i)
        values[mine.fetches[i]] = o.frame->take(i);
      o.pool->give_back(std::move(o.frame));
    }
    for (std::size_t c = 0; c < calls_.size(); ++c) {
      const task_part& r = plan_.others_[c];
      auto answer = wire::unpack<wire::values>(calls_[c]->get());
      std::size_t next = 0;
      for (std::size_t i = 0; i < r.fetches.size(); ++i) {
        auto e = r.registration.part.fetches[i];
        if (e.port == run_only) continue;
        if (next >= answer.tensors.size())
          fail(errc::internal, to_string(*r.task), " answered with too few values");
        any_array& v = answer.tensors[next++];
        check_answer(v, r.registration.part.graph.nodes[e.node].outputs[e.port], *r.task);
        values[r.fetches[i]] = std::move(v);
      }
    }
    return step_results(std::move(values));
  }

  master_plan& plan_;
  task_directory& tasks_;
  const run_options& options_;
  const task_directory::step step_;
  std::uint64_t links_lost_;  ///< that are known
  std::shared_ptr<const error> lost_value_;
  const deadline until_;
  std::vector<std::shared_ptr<channel>> links_;
  std::vector<std::shared_ptr<pending>> calls_;  ///< null: not made
  std::shared_ptr<const error> failure_;         ///< of making them
  const std::shared_ptr<own_part> own_ = std::make_shared<own_part>();
  bool borrows_ = false;  ///< messages may refer to memory of the caller
};

step_results master_plan::run(std::span<const feed_ref> feeds, const run_options& options) {
  tasks_->check_open();
  if (feeds.size() < feeds_)
    fail(errc::invalid_argument, "the step takes ", feeds_, " feeds, and got ", feeds.size());
  if (others_.empty()) return run_here(feeds, options, tasks_->next_step());
  return distributed_step(*this, options).run(feeds);
}

}  // namespace deft
