// SPDX-License-Identifier: Apache-2.0
// deft/session/master/master_run.ipp: starts a step of a plan, and waits for it.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/session/master/distributed_step.ipp>
#include <deft/session/master/master_plan.hpp>
#include <optional>

namespace deft::ext {

void master_plan::check_run(std::span<const feed_ref> feeds) const {
  tasks_->check_open();
  if (feeds.size() < feeds_)
    fail(errc::invalid_argument, "[run] the step takes ", feeds_, " feeds, but got ", feeds.size());
}

void ready_plan::start(std::span<const feed_ref> feeds, const run_options& options,
                       const run_callback& done) {
  run_outcome o;
  run_options numbered = options;
  if (!numbered.step) numbered.step = &o.step;
  o.failure = failure_of([&] { o.results.emplace(run(feeds, numbered)); });
  o.step = *numbered.step;
  done(std::move(o));
}

void master_plan::start(std::span<const feed_ref> feeds, const run_options& options,
                        const run_callback& done) {
  const bool goes_on_later = waits_ && tasks_->cluster();
  if (others_.empty() && !goes_on_later) return ready_plan::start(feeds, options, done);
  check_run(feeds);
  if (others_.empty()) return start_here(feeds, options, done);
  auto reads = std::make_shared<worker::background_reads>(tasks_->cluster());
  auto step = std::make_shared<distributed_step>(
      shared_from_this(), feeds, options, [done, reads](run_outcome o) { done(std::move(o)); });
  const deadline until = deadline_of(options);
  step->begin(options.cancel, until, until != no_deadline);
}

step_results master_plan::run(std::span<const feed_ref> feeds, const run_options& options) {
  check_run(feeds);
  if (others_.empty()) return run_here(feeds, options);
  constexpr auto long_wait = std::chrono::seconds(10);
  struct {
    std::optional<step_results> results;
    std::shared_ptr<const error> failure;
    std::atomic<bool> over{false};
  } end;
  channel_group& h = tasks_->cluster()->channels();
  const deadline until = deadline_of(options);
  const auto step = std::make_shared<distributed_step>(
      shared_from_this(), feeds, options, [&end, &h](run_outcome o) {
        if (o.results) end.results.emplace(std::move(*o.results));
        end.failure = std::move(o.failure);
        end.over = true;
        h.notify();
      });
  step->begin(options.cancel, until, false);
  auto over = [&] { return end.over.load(); };
  if (!h.wait_until(over, std::min(until, deadline_in(long_wait)))) {
    step->warn_of_long_runs();
    if (!h.wait_until(over, until)) {
      step->expire();
      h.wait_until(over);
    }
  }
  if (!end.failure) return std::move(*end.results);
  step->copy_borrowed();
  throw error(*end.failure);
}

}  // namespace deft::ext
