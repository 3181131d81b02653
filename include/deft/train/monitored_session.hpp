// SPDX-License-Identifier: Apache-2.0
// deft/train/monitored_session.hpp: a session that starts, watches and ends a training job.
#pragma once
#include <deft/session/launch/task.hpp>
#include <deft/session/session.hpp>
#include <deft/train/hook.hpp>
#include <exception>
#include <string>
#include <vector>

namespace deft {

struct monitored_options {
  std::string checkpoint_dir = {};  ///< not implemented yet: must be empty
  std::vector<hook_ref> hooks = {};
  session_options session = {};
  /// How long the other workers wait for the chief to initialize the variables.
  std::chrono::nanoseconds start_timeout = std::chrono::minutes(2);
};

/// The chief initializes all variables and then sends a message, for which the other workers wait.
/// The message is kept on the first parameter server, or on the chief if there are none. Hooks run
/// around every step.
class monitored_session {
 public:
  /// Throws deadline_exceeded, which names the chief, if the chief does not initialize the
  /// variables within start_timeout; unimplemented for a checkpoint_dir.
  explicit monitored_session(task& self, monitored_options options = {});
  /// Calls the hooks' end, unless an exception ends the session's block. As in TensorFlow, so that
  /// no hook saves a broken state.
  ~monitored_session();
  monitored_session(const monitored_session&) = delete;

  /// As session::run; hooks also receive the values that they fetch.
  template <class... X>
  auto run(const X&... x) {
    return run(run_options{}, x...);
  }
  template <class... X>
  auto run(const run_options& options, const X&... x) {
    return detail::run_fetches(
        [this, &options](auto fetches, auto targets, auto feeds) {
          return this->run_request(fetches, targets, feeds, options);
        },
        x...);
  }

  /// Whether a hook or request_stop has asked to stop.
  bool should_stop() const { return context_.stop_requested(); }
  void request_stop() { context_.request_stop(); }

  /// The underlying session, which runs without hooks.
  deft::session& session() { return session_; }
  std::string device_of(const any_tensor& t) { return session_.device_of(t); }

 private:
  step_results run_request(std::span<const output> fetches, std::span<const output> targets,
                           std::span<const feed_ref> feeds, const run_options& options);

  std::vector<hook_ref> hooks_;
  deft::session session_;
  run_context context_{session_};
  const int exceptions_ = std::uncaught_exceptions();  ///< in flight when the session was made
};

}  // namespace deft
