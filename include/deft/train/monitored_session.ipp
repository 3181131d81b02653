// SPDX-License-Identifier: Apache-2.0
// deft/train/monitored_session.ipp: starting together, and hooks.
#pragma once
#include <deft/core/log.hpp>
#include <deft/op/variable.hpp>
#include <deft/session/server/coordination.hpp>
#include <deft/train/monitored_session.hpp>

namespace deft {
namespace {
/// The chief's message, and the task that keeps it: a fast chief may have ended before the others
/// ask.
constexpr const char* initialized_signal = "/job:worker/task:0 has initialized the variables";
device_name keeper_of_signals(const cluster_spec& c) {
  return c.has("ps") ? task_name("ps", 0) : task_name("worker", 0);
}

/// The session, made after the chief has initialized the variables: it then has a connection to the
/// task that keeps the message, and detects at once if that task is lost.
session session_in_turn(task& self, const monitored_options& options) {
  if (!options.checkpoint_dir.empty())
    fail(errc::unimplemented, "checkpoint_dir=\"", options.checkpoint_dir,
         "\": checkpoints are not implemented yet; leave it empty");
  if (!self.is_chief())
    self.server().coordination().wait(keeper_of_signals(self.cluster()), initialized_signal,
                                      options.start_timeout);
  return session(self, options.session);
}

}  // namespace

monitored_session::monitored_session(task& self, monitored_options options)
    : hooks_(std::move(options.hooks)), session_(session_in_turn(self, options)) {
  for (auto& h : hooks_) h->begin();
  if (!self.is_chief()) return;
  session_.run(initialize_all());
  if (self.distributed())
    self.server().coordination().signal(keeper_of_signals(self.cluster()), initialized_signal,
                                        options.start_timeout);
}

monitored_session::~monitored_session() {
  if (std::uncaught_exceptions() > exceptions_) return;
  for (auto& h : hooks_) try {
      h->end();
    } catch (const std::exception& e) {
      logging::warning("a hook's end failed: ", e.what());
    } catch (...) {
      logging::warning("a hook's end failed with an exception that is not a std::exception");
    }
}

step_results monitored_session::run_request(std::span<const output> fetches,
                                            std::span<const output> targets,
                                            std::span<const feed_ref> feeds,
                                            const run_options& options) {
  std::vector<output> all(fetches.begin(), fetches.end());
  std::vector<std::size_t> counts;  // of what each hook fetches
  for (const auto& h : hooks_) {
    const std::vector<any_tensor> asked = h->before_run(context_);
    for (const auto& t : asked) all.push_back(t.handle());
    counts.push_back(asked.size());
  }
  step_results results = session_.run_request(all, targets, feeds, options);
  std::size_t next = fetches.size();
  std::vector<any_array> values;
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    values.clear();
    for (std::size_t n = counts[i]; n > 0; --n) values.push_back(results.peek(next++));
    hooks_[i]->after_run(context_, values);
  }
  return results;
}

}  // namespace deft
