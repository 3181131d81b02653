// SPDX-License-Identifier: Apache-2.0
// deft/train/monitored_session.ipp: starting together, and hooks.
#pragma once
#include <deft/op/variable.hpp>
#include <deft/train/monitored_session.hpp>

namespace deft {
namespace {
constexpr const char* initialized_signal = "variables are initialized";
}

monitored_session::monitored_session(task& self, monitored_options options)
    : hooks_(std::move(options.hooks)), session_(self, options.session) {
  if (!options.checkpoint_dir.empty())
    fail(errc::unimplemented, "checkpoint_dir=\"", options.checkpoint_dir,
         "\": checkpoints are not there yet; leave it empty");
  for (auto& h : hooks_) h->begin();
  if (self.is_chief()) {
    session_.run(initialize_all());
    if (self.distributed()) self.server().signal(initialized_signal);
  } else {
    self.server().wait_for_signal("worker", 0, initialized_signal, options.start_timeout);
  }
}

monitored_session::~monitored_session() {
  for (auto& h : hooks_) try {
      h->end();
    } catch (const error&) {
      // A hook's end is no reason to lose what follows.
    }
}

step_results monitored_session::run_request(std::span<const output> fetches,
                                            std::span<const feed_value* const> feeds,
                                            const run_options& options) {
  std::vector<output> all(fetches.begin(), fetches.end());
  for (const auto& h : hooks_)
    for (const auto& t : h->fetches()) all.push_back(t.handle());
  step_results results = session_.run_request(all, feeds, options);
  std::size_t next = fetches.size();
  std::vector<any_array> values;
  for (auto& h : hooks_) {
    values.clear();
    for (std::size_t n = h->fetches().size(); n > 0; --n) values.push_back(results.peek(next++));
    h->after_run(context_, values);
  }
  return results;
}

}  // namespace deft
