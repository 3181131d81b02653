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
  std::string checkpoint_dir = {};  ///< not there yet: anything but "" is unimplemented
  std::vector<hook_ref> hooks = {};
  session_options session = {};
  /// How long the others wait for the chief to have initialized the variables.
  std::chrono::nanoseconds start_timeout = std::chrono::minutes(2);
};

/// The chief initializes all variables and says so; the other workers wait for its message, which
/// is kept where the variables are: on the first parameter server, or on the chief if there is
/// none. Hooks run around every step.
class monitored_session {
 public:
  /// Throws deadline_exceeded naming the chief if it does not begin, unimplemented for a
  /// checkpoint_dir.
  explicit monitored_session(task& self, monitored_options options = {});
  /// Calls the hooks' end if the session ends in order: not while an exception leaves its block,
  /// as TensorFlow does it, so that no hook saves a state that is broken.
  ~monitored_session();
  monitored_session(const monitored_session&) = delete;

  /// As session::run; the hooks see the values that they asked for.
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

  /// A hook, or request_stop, has asked for the end.
  bool should_stop() const { return context_.stop_requested(); }
  void request_stop() { context_.request_stop(); }

  /// The session beneath, without hooks.
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
