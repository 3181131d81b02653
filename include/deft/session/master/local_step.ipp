// SPDX-License-Identifier: Apache-2.0
// deft/session/master/local_step.ipp: runs one step of a plan that has one part, on this task.
#pragma once
#include <boost/container/small_vector.hpp>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/execute/trace_recorder.hpp>
#include <deft/session/master/master_plan.hpp>
#include <deft/session/threads/watchdog.hpp>
#include <optional>

namespace deft::ext {

/// One step, but for its frame: what the frame runs with, and what its error means.
class master_plan::local_step {
 public:
  local_step(const master_plan& plan, std::span<const feed_ref> feeds, const run_options& options)
      : tasks_(*plan.tasks_),
        number_(tasks_.next_step()),
        feeds_(feeds),
        until_(plan.deadline_of(options)),
        trace_(options.trace),
        stop_(plan.closing_) {
    if (options.step) *options.step = number_;
    // Usually the part takes all feeds in their order.
    if (!plan.feeds_in_order_) {
      for (auto f : plan.own_part_.feeds) reordered_.push_back(feeds[f]);
      feeds_ = reordered_;
    }
    if (until_ != no_deadline || options.cancel.stop_possible()) {
      watch_.emplace(until_, options.cancel, plan.closing_);
      stop_ = watch_->stop();
    }
    context_.step = number_;
    if (plan.draws_) context_.draw = draw_counter(*tasks_.options().stream, tasks_.next_draw());
    if (trace_) context_.observer = &recorder_.emplace();
  }
  local_step(const local_step&) = delete;

  std::uint64_t number() const { return number_; }
  std::span<const feed_ref> feeds() const { return feeds_; }
  const step_context& context() const { return context_; }

  /// After a run that succeeded.
  void note_trace() {
    if (trace_) trace_->events = recorder_->take();
  }
  /// After a run that failed in `frame`, which is null if it did not begin.
  void note_failure(const executable::frame* frame) const {
    step_updates updates;
    updates.known = frame && frame->has_updated() ? step_fate::in_part : step_fate::unchanged;
    // Without memory, whoever asks later is told that the step's fate is unknown.
    (void)failure_of([&] { tasks_.note_failure(number_, std::move(updates)); });
  }
  /// The error of a run in `frame`, which may be null: it says why the run was stopped, if it was.
  error explained(const error& e, const executable::frame* frame) const {
    if (e.code() != errc::cancelled) return e;
    if (watch_ && watch_->late())
      return error(errc::deadline_exceeded,
                   str("the step timed out after ", duration_text(until_ - began_), " on ",
                       to_string(*tasks_.self_name())),
                   e.node(), e.where(), e.device());
    if (tasks_.cluster() && tasks_.cluster()->stopped()) {
      const error stopped = tasks_.cluster()->stopped_error();
      return frame && frame->has_updated() ? perhaps_applied(stopped) : stopped;
    }
    return error(errc::cancelled,
                 tasks_.closed() ? "the session was closed" : "the run was cancelled", e.node(),
                 e.where(), e.device());
  }

 private:
  task_directory& tasks_;
  const std::uint64_t number_;
  std::span<const feed_ref> feeds_;
  boost::container::small_vector<feed_ref, 8> reordered_;  ///< of most steps without an allocation
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  const deadline until_;
  step_trace* const trace_;  ///< null if the run is not traced
  std::optional<trace_recorder> recorder_;
  std::optional<watched> watch_;
  std::stop_token stop_;
  step_context context_{.stop = stop_};
};

/// A step that no thread waits for: lanes that had to wait go on on background threads.
class master_plan::background_step final : public step_driver,
                                           public std::enable_shared_from_this<background_step> {
 public:
  background_step(std::shared_ptr<master_plan> plan, std::span<const feed_ref> feeds,
                  const run_options& options, run_callback done)
      : under_way_(plan->tasks_->cluster()->background().begin()),
        plan_(std::move(plan)),
        step_(*plan_, feeds, options),
        done_(std::move(done)) {}

  /// Runs it until it has to wait, or to its end.
  void begin() {
    self_ = shared_from_this();
    bool over = true;
    auto failure = failure_of([&] {
      // Set before the frame starts, as another thread may end it.
      frame_ = plan_->own_->take();
      over = frame_->start(step_.feeds(), step_.context(), *this);
    });
    if (over) finish(failure);
  }

  void wake(std::uint32_t lane) override {
    const auto go_on = [self = shared_from_this(), lane] { self->frame_->resume(lane); };
    try {
      plan_->tasks_->cluster()->background().run(go_on);
    } catch (const std::exception&) {
      go_on();  // no other thread can be started
    }
  }
  void ended() override { finish(frame_->failure()); }

 private:
  void finish(const std::shared_ptr<const error>& failure) {
    const auto self = std::move(self_);
    run_outcome o;
    o.step = step_.number();
    if (failure) {
      step_.note_failure(frame_.get());
      o.failure = std::make_shared<const error>(step_.explained(*failure, frame_.get()));
      if (frame_) plan_->own_->give_back(std::move(frame_));
    } else {
      step_.note_trace();
      o.results.emplace(std::move(frame_), plan_->own_);
    }
    const auto done = std::move(done_);
    done(std::move(o));
  }

  background_work::token under_way_;  ///< declared first, as the end of the worker waits for it
  const std::shared_ptr<master_plan> plan_;
  local_step step_;
  run_callback done_;
  std::unique_ptr<executable::frame> frame_;
  std::shared_ptr<background_step> self_;  ///< until the end, as nothing else may refer to it
};

step_results master_plan::run_here(std::span<const feed_ref> feeds, const run_options& options) {
  local_step step(*this, feeds, options);
  std::unique_ptr<executable::frame> frame;
  try {
    frame = own_->take();
    frame->run(step.feeds(), step.context());
    step.note_trace();
  } catch (const error& e) {
    step.note_failure(frame.get());
    const error why = step.explained(e, frame.get());
    if (frame) own_->give_back(std::move(frame));
    throw why;
  } catch (const std::bad_alloc&) {
    step.note_failure(frame.get());
    fail(errc::resource_exhausted, to_string(*tasks_->self_name()), " ran out of host memory");
  }
  // The only part has all fetches, so its values are already in their order.
  return step_results(std::move(frame), own_);
}

void master_plan::start_here(std::span<const feed_ref> feeds, const run_options& options,
                             const run_callback& done) {
  std::make_shared<background_step>(shared_from_this(), feeds, options, done)->begin();
}

}  // namespace deft::ext
