// SPDX-License-Identifier: Apache-2.0
// deft/session/session.hpp: runs parts of a graph, in this process or on a cluster.
#pragma once
#include <deft/expr/tensor.hpp>
#include <deft/graph/dot.hpp>
#include <deft/op/variable.hpp>
#include <deft/plan/place.hpp>
#include <deft/session/engine.hpp>
#include <deft/session/explain.hpp>
#include <deft/session/request.hpp>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace deft {

namespace ext {

class session_impl;

}  // namespace ext

class task;
class monitored_session;

namespace detail {

/// Session options whose random stream has been chosen.
struct numbered_options {
  // Not an aggregate: for clang session({.fuse = false}) could mean this, too.
  explicit numbered_options(session_options o) : options(std::move(o)) {}
  session_options options;
};
/// `options` with the random stream of task `index` for its next session on the current graph,
/// unless they already name one.
numbered_options numbered(session_options options, std::uint64_t index = 0);
std::shared_ptr<engine> engine_at(const std::string& target, const session_options& options);

}  // namespace detail

/// The placeholders that a prepared step is fed, in the order of its arguments: see feeds.
template <class... X>
struct feed_list {
  std::tuple<X...> targets;  ///< the tensors themselves
};
/// Names the tensors for which a prepared step takes values:
/// `auto step = s.prepare(loss, feeds(x, label))`.
template <class... X>
auto feeds(const X&... x) {
  if constexpr ((ext::expression<X> && ...)) {
    return feed_list<X...>{{x...}};
  } else {
    static_assert(detail::takes<feed_list<>, X...>,
                  "[feeds] expects the tensors that a prepared step is given values for, and got "
                  "something else: s.prepare(loss, feeds(x))");
    return feed_list<>();
  }
}

/// Runs the part of a graph that its fetches need, in this process or on a cluster.
///
///     session s;
///     s.run(initialize_all());
///     float l = s.run(train, loss, x = images, label = labels);
///
/// Thread-safe: several threads may call run at once. The destructor closes the session.
class session : public detail::run_forms<session> {
 public:
  /// A session in this process, with its own devices and variables. Throws invalid_argument for
  /// options out of range.
  explicit session(session_options options = {});
  /// A session whose master is the task at `target`: "deft://host:port", or, if no other task may
  /// answer there, "deft://host:port/job:worker/task:0". That task connects to the others of its
  /// cluster. A server of this process is called directly, without a socket. Throws
  /// invalid_argument if `target` has another form, failed_precondition if another task answers,
  /// unavailable if the task does not answer within connect_timeout, deadline_exceeded if
  /// `options.timeout` is shorter and passes first.
  // A template, so that a braced list of options does not convert to a string.
  template <std::convertible_to<std::string_view> Target>
  explicit session(const Target& target, session_options options = {})
      : session(std::string(target), detail::numbered(std::move(options))) {}
  /// A session whose master is the server of `self`, or in this process if `self` has no server.
  explicit session(task& self, session_options options = {});
  /// A session on an engine of the caller's, such as one of a test.
  explicit session(std::shared_ptr<ext::engine> on, session_options options);
  ~session();
  /// @cond moves
  session(session&&) noexcept;
  /// @endcond
  /// Closes what this session was.
  session& operator=(session&&) noexcept;

  /// Makes the plan of a run that is called often, so that each call only runs it:
  /// `auto step = s.prepare(train, loss, feeds(x, label))`, then `float l = step(images, labels)`.
  /// Takes fetches as run does, and the tensors to feed as one `feeds(…)`. The result must not
  /// outlive the session. Throws failed_precondition for an empty tensor or a closed session,
  /// invalid_argument for a graph that cannot be planned or placed, unavailable or
  /// deadline_exceeded if a task that it needs cannot be reached.
  /// @{
  template <class... X>
  auto prepare(const X&... x);
  template <class A>
  auto prepare(const A& a, ext::source_location w = ext::here()) {
    return prepare_at(w, a);
  }
  template <class A, class B>
  auto prepare(const A& a, const B& b, ext::source_location w = ext::here()) {
    return prepare_at(w, a, b);
  }
  template <class A, class B, class C>
  auto prepare(const A& a, const B& b, const C& c, ext::source_location w = ext::here()) {
    return prepare_at(w, a, b, c);
  }
  /// @}
  /// @cond refused
  template <std::size_t N, class... X>
  auto prepare(const detail::listed (&)[N], const X&...) {
    static_assert(detail::takes<session, X...>,
                  "[prepare] expects fetches one by one, and got several in braces: "
                  "s.prepare(x, y, feeds(k)); a std::vector of tensors is one, too");
    return [](const auto&...) { return detail::refused(); };
  }
  /// @endcond

  /// The full name of the device that computes `t` if only `t` is fetched, such as
  /// "/job:ps/replica:0/task:0/cpu:0". Throws as prepare does.
  std::string device_of(const any_tensor& t);
  /// What will be run for these fetches: see explain_plan.
  /// @{
  template <class... X>
  std::string explain(const X&... x) {
    return explain(explain_options{}, x...);
  }
  template <class... X>
  std::string explain(const explain_options& options, const X&... x) {
    return ext::explain_plan(describe(x...), options);
  }
  /// @}
  /// The same before it is put into words.
  template <class... X>
  requires detail::can_be_run<X...> ext::plan_description describe(const X&... x) {
    detail::request<X...> r({}, x...);
    return describe_request(r.fetched.get(), r.targets.get());
  }
  /// The devices of all tasks of the cluster: name, description, memory in bytes, PCI bus id.
  /// Throws unavailable if a task cannot be reached within connect_timeout.
  std::vector<device_info> devices();

  /// How a run that failed ended on the tasks whose variables it updates: `step` is what its
  /// run_options received. Stops what is left of it, and waits at most `timeout` for answers.
  /// Throws failed_precondition for a closed session.
  step_fate fate_of(std::uint64_t step,
                    std::chrono::nanoseconds timeout = std::chrono::seconds(30));

  /// Cancels the runs under way; later ones throw failed_precondition.
  void close();
  /// Deletes the variables of a container ("" is the default one) on all tasks, which are
  /// uninitialized afterwards. Throws unavailable if a task cannot be reached.
  void reset(const std::string& container = "");

  /// The session's options, with the random stream that was chosen if none was given.
  const session_options& options() const;
  /// The graph that was current when the session was made. A run may fetch from another graph, for
  /// which a warning is logged.
  deft::graph graph() const;
  /// @cond internal
  ext::session_impl& impl() { return *impl_; }
  /// @endcond

 private:
  explicit session(const detail::numbered_options& o);
  session(const std::string& target, const detail::numbered_options& o)
      : session(detail::engine_at(target, o.options), o.options) {}
  session(task& self, const detail::numbered_options& o);
  friend class detail::run_forms<session>;
  friend class monitored_session;
  ext::step_results run_request(std::span<const ext::output> fetches,
                                std::span<const ext::output> targets,
                                std::span<const ext::feed_ref> feeds, const run_options& options,
                                ext::source_location w);
  ext::plan_description describe_request(std::span<const ext::output> fetches,
                                         std::span<const ext::output> targets);
  template <class... X>
  auto prepare_at(ext::source_location w, const X&... x);
  std::shared_ptr<ext::ready_plan> plan_request(std::span<const ext::output> fetches,
                                                std::span<const ext::output> feeds,
                                                ext::source_location w);

  std::shared_ptr<ext::session_impl> impl_;
};

/// As session::devices.
inline std::vector<device_info> list_devices(session& s) { return s.devices(); }
/// What will happen, before it does.
template <class... X>
std::string explain(session& s, const X&... x) {
  return s.explain(x...);
}
/// The plan for these fetches and feeds in Graphviz's language, each node on its device: `dot
/// -Tsvg` draws it.
template <class... X>
std::string to_dot(session& s, const X&... x) {
  return to_dot(s.describe(x...).placed);
}
/// The graph as it was written.
template <class... X>
requires(sizeof...(X) > 0 && detail::can_be_run<X...>) std::string to_dot(const X&... x) {
  detail::request<X...> r({}, x...);
  return to_dot(ext::flatten(r.fetched.get(), r.targets.get()).graph);
}

namespace detail {
std::string placements(session& s, std::span<const output> tensors);
}
/// A line for each: its name, and the full name of the device that runs it when it is fetched
/// alone. Variables, tensors and expressions.
template <ext::expression... X>
std::string placements(session& s, const X&... x) {
  const ext::output tensors[] = {detail::fetch_of<X>::handle(x)...};
  return detail::placements(s, tensors);
}

/// The device that was requested for `t` with `on`, in canonical form; empty if none was.
std::string requested_device(const any_tensor& t);

}  // namespace deft

#include <deft/session/prepared.hpp>
