// SPDX-License-Identifier: Apache-2.0
// deft/train/sync_replicas.ipp: what a worker writes into its graph for a round, and the thread
// that ends rounds.
#pragma once
#include <condition_variable>
#include <deft/core/log.hpp>
#include <deft/op/group.hpp>
#include <deft/session/prepared.hpp>
#include <deft/session/session_impl.hpp>
#include <deft/train/replicas/operations.hpp>
#include <deft/train/round_updates.hpp>
#include <deft/train/slots.hpp>
#include <deft/train/sync_replicas.hpp>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace deft {
namespace {

// The nodes of each sync_replicas, in collections of the graph.
constexpr const char* grants_of_graph = "sync_replicas/grant";
constexpr const char* updates_of_graph = "sync_replicas/update";
constexpr const char* joins_of_graph = "sync_replicas/join";
constexpr const char* ends_of_graph = "sync_replicas/end";
constexpr const char* failures_of_graph = "sync_replicas/fail";
constexpr const char* leaves_of_graph = "sync_replicas/leave";
constexpr const char* states_of_graph = "sync_replicas/state";

std::vector<ext::node_ref> collected(const graph& g, const char* collection) {
  std::vector<ext::node_ref> nodes;
  for (const ext::output& o : g.collected(collection, "")) nodes.push_back(o.node);
  return nodes;
}

}  // namespace

sync_replicas::sync_replicas(std::shared_ptr<const optimizer> inner, int needed, int total,
                             std::function<operation()> after_update, ext::source_location w)
    : inner_(std::move(inner)),
      needed_(needed),
      total_(total),
      after_update_(std::move(after_update)) {
  if (needed < 1 || total < needed || total > op::replica_round::most)
    throw error(errc::invalid_argument,
                ext::str("[sync_replicas] cannot aggregate gradients of ", needed, " of ", total,
                         " replicas"),
                {}, w);
}

namespace {

/// Writes the nodes of one round.
class round_writer {
 public:
  round_writer(const any_variable& home, int needed, int total, ext::source_location w)
      : graph_(graph::of(*home.handle().node)), home_(home), w_(w) {
    const auto state = ext::decode<op::variable>(home.handle().node->attributes);
    round_.container = state.container;
    // Every worker writes the same program, and so the same names.
    round_.barrier =
        ext::str(home.name(), "/sync_replicas_", graph_.collected(updates_of_graph, "").size());
    round_.needed = needed;
    round_.total = total;
  }

  /// A node of the barrier.
  template <class Op>
  ext::node_ref at_barrier(std::span<const ext::output> in = {}) const {
    Op o;
    static_cast<op::replica_round&>(o) = round_;
    return add(o, home_, in);
  }

  /// Brings a gradient to the task of its variable.
  ext::node_ref bring(const any_variable& v, const any_tensor& gradient) const {
    op::accumulate_gradient o;
    o.container = round_.container;
    o.accumulator = name_for(v);
    std::vector<ext::output> in;
    if (const auto slices = detail::slices_of(gradient))
      in = {slices->rows.handle(), slices->indices.handle()};
    else
      in = {gradient.handle()};
    return add(o, v, in);
  }

  /// The mean of what `sessions` have brought.
  any_tensor mean(const any_variable& v, const any_tensor& gradient, const ext::output& sessions,
                  const any_tensor& scale) const {
    const auto slices = detail::slices_of(gradient);
    op::take_gradients o;
    o.container = round_.container;
    o.accumulator = name_for(v);
    o.needed = round_.needed;
    o.type = v.type();
    o.shape = v.shape();
    o.rows = slices.has_value();
    if (slices) {
      o.shape[0] = dyn;
      o.index_type = slices->indices.type();
    }
    const ext::output in[] = {sessions};
    const ext::node_ref taken = add(o, v, in);
    const detail::placed_with there(v);
    std::vector<any_tensor> parts;
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(round_.needed); ++i)
      parts.push_back(slices ? detail::indexed_slices{any_tensor(ext::output{taken, 2 * i}),
                                                      any_tensor(ext::output{taken, 2 * i + 1}),
                                                      slices->like}
                                   .tensor()
                             : any_tensor(ext::output{taken, i}));
    any_tensor total = detail::sum_of_slices(parts);
    if (!total.valid()) {
      total = parts[0];
      for (std::size_t i = 1; i < parts.size(); ++i) total = total + parts[i];
    }
    const any_tensor factor = cast(scale, v.type());
    return detail::each_value(total, [&](const any_tensor& x) { return any_tensor(x * factor); });
  }

 private:
  std::string name_for(const any_variable& v) const {
    return ext::str(round_.barrier, "/", v.name());
  }
  template <class Op>
  ext::node_ref add(const Op& o, const any_variable& near, std::span<const ext::output> in) const {
    return ext::add_node(graph_, o,
                         {.inputs = in, .location = w_, .device = detail::processor_of(near)});
  }

  graph graph_;
  const any_variable home_;
  const ext::source_location w_;
  op::replica_round round_;
};

}  // namespace

operation sync_replicas::apply(const std::vector<gradient_of_variable>& gradients,
                               const variable<std::int64_t>* step, ext::source_location w) const {
  const ext::location_scope on_behalf(w);
  std::vector<gradient_of_variable> brought;
  for (const auto& g : gradients)
    if (g.gradient.valid()) brought.push_back(g);
  if (brought.empty())
    throw error(errc::invalid_argument, "[minimize] the loss depends on no trainable variable", {},
                w);
  const any_variable home = step ? any_variable(*step) : brought[0].variable;
  graph g = graph::of(*home.handle().node);
  const auto in_graph = as_default(g);
  const round_writer round(home, needed_, total_, w);

  ext::output begun[1];
  {
    const ext::scope before_all(ext::push_controls{nullptr});
    begun[0] = {round.at_barrier<op::current_round>(), 0};
  }
  std::vector<ext::node_ref> there;
  for (const auto& [v, gradient] : brought) there.push_back(round.bring(v, gradient));
  ext::control_scope with_gradients(std::move(there));
  const ext::node_ref arrive = round.at_barrier<op::arrive_at_round>(begun);

  // Waiting for a grant and the update are steps of their own: what the update reads, such as slots
  // and the step of a rate, must not be from before the grant.
  const ext::scope without_controls(ext::push_controls{nullptr});
  const ext::node_ref granted = round.at_barrier<op::await_replicas>();
  g.collect(grants_of_graph, "", {granted, 0});
  for (auto& [v, gradient] : brought)
    gradient = round.mean(v, gradient, {granted, 0}, any_tensor(ext::output{granted, 1}));
  const operation applied =
      step ? inner_->apply_gradients(brought, *step, w) : inner_->apply_gradients(brought, w);
  {
    const ext::control_scope after_gradients({applied.handle()});
    std::optional<ext::control_scope> after_all;
    if (after_update_) after_all.emplace(std::vector<ext::node_ref>{after_update_().handle()});
    g.collect(updates_of_graph, "", {round.at_barrier<op::end_round>(), 0});
  }
  const placeholder<std::string, dyn> left("sync_replicas/left");
  const placeholder<std::int32_t> code("sync_replicas/code");
  const placeholder<std::string> why("sync_replicas/why");
  const placeholder<bool> in_part("sync_replicas/in_part");
  const ext::output known[] = {left.handle()},
                    failure[] = {code.handle(), why.handle(), in_part.handle()};
  g.collect(joins_of_graph, "", {round.at_barrier<op::join_rounds>(known), 0});
  g.collect(ends_of_graph, "", {round.at_barrier<op::end_round>(), 0});
  g.collect(failures_of_graph, "", {round.at_barrier<op::fail_round>(failure), 0});
  g.collect(leaves_of_graph, "", {round.at_barrier<op::leave_rounds>(), 0});
  g.collect(states_of_graph, "", {round.at_barrier<op::describe_round>(), 0});
  return operation(arrive);
}

class replica_updates::state {
 public:
  state(session& s, const graph& g, const std::vector<std::vector<std::string>>& left)
      : engine_(s.impl().shared_engine()) {
    const auto grants = collected(g, grants_of_graph), updates = collected(g, updates_of_graph),
               joins = collected(g, joins_of_graph), ends = collected(g, ends_of_graph),
               failures = collected(g, failures_of_graph), leaves = collected(g, leaves_of_graph);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const tensor<std::string, dyn> gone(joins[i]->inputs()[0]);
      const tensor<std::int32_t> code(failures[i]->inputs()[0]);
      const tensor<std::string> why(failures[i]->inputs()[1]);
      const tensor<bool> in_part(failures[i]->inputs()[2]);
      const tensor<std::int64_t, dyn> sessions(ext::output{grants[i], 0});
      const tensor<double> scale(ext::output{grants[i], 1});
      s.run(operation(joins[i]), gone = i < left.size() ? left[i] : std::vector<std::string>());
      rounds_.push_back({s.prepare(sessions, scale),
                         s.prepare(operation(updates[i]), feeds(sessions, scale)),
                         s.prepare(operation(ends[i])),
                         s.prepare(operation(failures[i]), feeds(code, why, in_part)),
                         s.prepare(operation(leaves[i]))});
    }
    for (const round& r : rounds_) threads_.emplace_back([this, &r] { update(r); });
  }

  ~state() {
    leave();
    for (auto& t : threads_) t.join();
  }
  void leave() {
    ending_.request_stop();
    for (const round& r : rounds_) try {
        r.leave({.timeout = std::chrono::seconds(1)});  // which ends its thread
      } catch (const error&) {
        stopping_.request_stop();
      }
  }

 private:
  struct round {
    std::function<std::tuple<ndarray<std::int64_t, dyn>, double>(const run_options&)> grant;
    std::function<void(const run_options&, const ndarray<std::int64_t, dyn>&, double)> update;
    std::function<void(const run_options&)> end;
    std::function<void(const run_options&, std::int32_t, const std::string&, bool)> fail;
    std::function<void(const run_options&)> leave;
  };
  /// For what ends a round, which others wait for, also when this replica is ending.
  static constexpr auto patience = std::chrono::seconds(5);
  /// For a grant: the others may take their time.
  static constexpr auto endless = std::chrono::hours(24 * 365);

  void update(const round& r) const {
    for (bool goes_on = true; goes_on;) {
      bool granted = false;
      std::uint64_t step = 0;  // of the update; 0 if it has not begun
      try {
        const auto [sessions, scale] =
            r.grant({.timeout = endless, .cancel = stopping_.get_token()});
        granted = true;
        run_options options{.cancel = stopping_.get_token()};
        options.step = &step;
        r.update(options, sessions, scale);
      } catch (const error& e) {
        if (granted)
          goes_on = give_back(r, e, step) && e.code() != errc::cancelled && pause();
        else if (e.code() == errc::cancelled)  // it has left, or the session was closed
          goes_on = false;
        else
          goes_on = report(r, e.code(), e.message()) && pause();
      }
    }
  }
  /// Ends the round that was granted and whose update failed with `e`. Returns false if the updates
  /// end.
  bool give_back(const round& r, const error& e, std::uint64_t step) const {
    // What fails by itself does so again, and no checkpoint helps.
    constexpr errc passing[] = {errc::unavailable, errc::aborted, errc::deadline_exceeded,
                                errc::cancelled, errc::resource_exhausted};
    if (std::ranges::find(passing, e.code()) == std::end(passing))
      return report(r, e.code(), e.message());
    switch (fate_of(step)) {
      case step_fate::applied:
        return until_told([&] { r.end({.timeout = patience}); });
      case step_fate::unchanged:
        // That this replica is ending is nothing that the others have asked for.
        return report(r, e.code() == errc::cancelled ? errc::aborted : e.code(), e.message());
      default:
        return report(r, e.code(), e.message(), true);
    }
  }
  step_fate fate_of(std::uint64_t step) const {
    if (step == 0) return step_fate::unchanged;
    try {
      return engine_->fate_of(step, std::chrono::steady_clock::now() + patience);
    } catch (const error&) {
      return step_fate::unknown;
    }
  }
  /// Fails the steps that wait for the update. Returns false if the updates end.
  bool report(const round& r, errc code, const std::string& why, bool in_part = false) const {
    return until_told(
        [&] { r.fail({.timeout = patience}, static_cast<std::int32_t>(code), why, in_part); });
  }
  /// Tells the barrier how a round ended, for which others wait: again and again where its task
  /// does not answer, as it may do so later and know nothing of it. Returns false if the updates
  /// end.
  template <class Tell>
  bool until_told(const Tell& tell) const {
    do try {
        tell();
        return true;
      } catch (const error& e) {
        if (e.code() == errc::failed_precondition) return true;  // it was told before
        if (e.code() == errc::cancelled) return false;           // the session was closed
      }
    while (pause());
    return false;
  }
  /// After an error, which may come again at once. Returns false if the updates end.
  bool pause() const {
    std::mutex guard;
    std::condition_variable_any over;
    std::unique_lock lock(guard);
    const std::stop_token ending = ending_.get_token();
    return !over.wait_for(lock, ending, std::chrono::milliseconds(200),
                          [&] { return ending.stop_requested(); });
  }

  const std::shared_ptr<ext::engine> engine_;  ///< the session itself may be replaced
  std::vector<round> rounds_;
  std::stop_source ending_;    ///< no new updates
  std::stop_source stopping_;  ///< nor those under way
  std::vector<std::thread> threads_;
};

replica_updates::replica_updates(session& s, graph g,
                                 const std::vector<std::vector<std::string>>& left)
    : state_(std::make_unique<state>(s, g, left)) {}
replica_updates::~replica_updates() = default;
void replica_updates::leave() { state_->leave(); }

namespace {

class replica_hook_of_graph final : public hook, public ext::round_updates {
 public:
  explicit replica_hook_of_graph(graph g) : graph_(std::move(g)) {
    for (const ext::node_ref& n : collected(graph_, states_of_graph))
      for (const std::uint32_t port : {0u, 1u}) states_.emplace_back(ext::output{n, port});
    left_.resize(states_.size() / 2);
  }
  void after_create(run_context& context) override {
    end_updates();
    updates_.emplace(context.session(), graph_, left_);
    leaving_ = std::jthread([this, asked = context.stop_token()](const std::stop_token& over) {
      std::condition_variable_any stopped;
      const std::stop_callback wake(asked, [&] {
        std::lock_guard lock(leaving_guard_);
        stopped.notify_all();
      });
      std::unique_lock lock(leaving_guard_);
      stopped.wait(lock, over, [&] { return asked.stop_requested(); });
      lock.unlock();
      // A step that waits for workers which do not come would never end.
      if (asked.stop_requested()) updates_->leave();
    });
    warning_ = std::jthread([state = context.session().prepare(states_, context.location())](
                                const std::stop_token& stop) { warn_of_absent(state, stop); });
  }
  run_arguments before_run(run_context&) override { return {.fetches = states_}; }
  void after_run(run_context& context, std::span<const any_array> values) override {
    warning_.request_stop();
    if (context.stop_requested()) return end_updates();
    for (std::size_t i = 0; i < left_.size(); ++i) note(i, values[2 * i], values[2 * i + 1]);
  }
  void end(run_context&) override { end_updates(); }
  void end_updates() override {
    leaving_ = std::jthread();
    updates_.reset();
  }

 private:
  /// Says so where the first step waits long for workers that have not come.
  static void warn_of_absent(const std::function<std::vector<any_array>()>& state,
                             const std::stop_token& stop) {
    constexpr auto long_time = std::chrono::seconds(10);
    std::mutex guard;
    std::condition_variable_any stopped;
    std::unique_lock lock(guard);
    if (stopped.wait_for(lock, stop, long_time, [&] { return stop.stop_requested(); })) return;
    try {
      const std::vector<any_array> now = state();
      for (std::size_t i = 0; i < now.size(); i += 2)
        if (const std::int64_t absent = now[i].data<std::int64_t>()[1])
          logging::warning("synchronous training: ", absent,
                           " of the workers have not come yet, and a step needs ",
                           now[i].data<std::int64_t>()[0]);
    } catch (const error&) {
      // The steps that wait report it.
    }
  }
  void note(std::size_t i, const any_array& numbers, const any_array& tasks) {
    std::vector<std::string> left(tasks.strings().begin(), tasks.strings().end());
    if (left == left_[i]) return;
    left_[i] = std::move(left);
    const std::string names = ext::join(left_[i], ", ");
    const std::int64_t needed = numbers.data<std::int64_t>()[0];
    if (names.empty())
      logging::warning("all workers that had left are back; a step averages ", needed,
                       " gradients");
    else
      logging::warning("workers that have left: ", names, "; a step averages ", needed,
                       needed == 1 ? " gradient" : " gradients");
  }

  graph graph_;
  std::vector<any_tensor> states_;
  std::vector<std::vector<std::string>>
      left_;  ///< the tasks of workers that left, when it was last seen
  std::optional<replica_updates> updates_;
  std::mutex leaving_guard_;
  std::jthread leaving_, warning_;
};

}  // namespace

hook_ref detail::replica_hook(const task& self, graph g) {
  const int workers = self.distributed() ? static_cast<int>(self.cluster().workers().size()) : 1;
  const auto states = collected(g, states_of_graph);
  for (const ext::node_ref& n : states)
    if (const auto total = ext::decode<op::describe_round>(n->attributes).total; total > workers)
      throw error(errc::invalid_argument,
                  ext::str("[sync_replicas] waits for ", total, " replicas, and there ",
                           workers == 1 ? "is 1 worker" : ext::str("are ", workers, " workers")),
                  {}, n->location());
  if (states.empty()) return nullptr;
  return std::make_shared<replica_hook_of_graph>(std::move(g));
}

}  // namespace deft
