// SPDX-License-Identifier: Apache-2.0
// deft/train/hook.hpp: what happens around the runs of a monitored session.
#pragma once
#include <atomic>
#include <deft/expr/tensor.hpp>
#include <memory>
#include <vector>

namespace deft {

class session;

/// What a hook may ask of its session during a run.
class run_context {
 public:
  explicit run_context(deft::session& s) : session_(s) {}
  /// For what has to be read after the run.
  deft::session& session() { return session_; }
  void request_stop() { stop_ = true; }
  bool stop_requested() const { return stop_; }

 private:
  deft::session& session_;
  std::atomic<bool> stop_{false};
};

/// Adds fetches to runs of a monitored session and looks at their values.
class hook {
 public:
  virtual ~hook() = default;
  /// Once, when the session is made and the graph can still be written.
  virtual void begin() {}
  /// Before each run: the tensors to fetch with it.
  virtual std::vector<any_tensor> before_run(run_context& context) {
    static_cast<void>(context);
    return {};
  }
  /// After each run that did not fail: `values` are those that before_run asked for.
  virtual void after_run(run_context& context, std::span<const any_array> values) {
    static_cast<void>(context), static_cast<void>(values);
  }
  /// Once, when the session ends in order: not where an exception ends it. What it throws is
  /// logged.
  virtual void end() {}
};
using hook_ref = std::shared_ptr<hook>;

/// Asks the session to stop once the global step has reached `last`. The session's constructor
/// throws failed_precondition where the graph has no global step.
hook_ref stop_at_step(std::int64_t last);
/// Stops when `loss` is not a number, with an error in the log; or throws invalid_argument if
/// `fail` is set.
hook_ref stop_on_nan(const any_tensor& loss, bool fail = false);

}  // namespace deft
