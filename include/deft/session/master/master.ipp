// SPDX-License-Identifier: Apache-2.0
// deft/session/master/master.ipp: makes plans for several tasks; umbrella of master/.
#pragma once
#include <algorithm>
#include <deft/core/thread.hpp>
#include <deft/graph/function.hpp>
#include <deft/kernels/constant_folding.hpp>
#include <deft/kernels/team.hpp>
#include <deft/session/master/distributed_step.ipp>
#include <deft/session/master/local_step.ipp>
#include <deft/session/master/master.hpp>
#include <deft/session/master/master_plan.ipp>
#include <deft/session/master/master_run.ipp>
#include <deft/session/master/task_answers.ipp>
#include <deft/session/master/task_directory.ipp>
#include <deft/session/wire/values.hpp>
#include <optional>
#include <set>

namespace deft::ext {
namespace {

class cluster_master final : public master_engine {
 public:
  explicit cluster_master(std::shared_ptr<task_directory> t) : tasks_(std::move(t)) {}
  ~cluster_master() override { cluster_master::close(); }

  std::shared_ptr<ready_plan> make_plan(flat_graph flat, const plan_limits& limits) override {
    return tasks_->await<std::shared_ptr<ready_plan>>(
        limits, [&](auto then) { begin_plan(std::move(flat), limits, read::here, then); });
  }
  void make_plan(flat_graph flat, const plan_limits& limits, plan_callback then) override {
    begin_plan(std::move(flat), limits, read::in_background, std::move(then));
  }

  plan_description describe(flat_graph flat, const plan_limits& limits) override {
    tasks_->check_open();
    auto made = run_passes(std::move(flat), limits, false);
    return {std::move(made.placed), std::move(made.passes), std::move(made.apart)};
  }

  bool when_known(const graph_def* g, const plan_limits& limits, failure_callback then) override {
    tasks_->check_open();
    const auto tasks = g ? tasks_of(*g) : all_tasks();
    if (tasks_->knows(tasks)) return true;
    tasks_->when_learned(tasks, limits,
                         [then = std::move(then), reads = reads_by(read::in_background)](
                             std::shared_ptr<const error> failure) { then(std::move(failure)); });
    return false;
  }

  std::vector<device_info> devices() override {
    tasks_->learn(all_tasks(), {});
    return tasks_->devices_of(all_tasks());
  }

  std::optional<std::uint64_t> draws() const override { return tasks_->draws(); }
  step_fate fate_of(std::uint64_t step, std::chrono::steady_clock::time_point until) override {
    tasks_->check_open();
    try {
      return tasks_->await<step_fate>({}, [&](auto then) {
        tasks_->fate_of(step, until, [then](step_fate f) { then(nullptr, f); });
      });
    } catch (const error&) {
      return step_fate::unknown;  // the session was closed, or this task stopped
    }
  }
  void fate_of(std::uint64_t step, std::chrono::steady_clock::time_point until,
               std::function<void(step_fate)> then) override {
    tasks_->check_open();
    tasks_->fate_of(
        step, until,
        [then = std::move(then), reads = reads_by(read::in_background)](step_fate f) { then(f); });
  }

  void close() override {
    if (!tasks_->close() || !tasks_->cluster()) return;
    tasks_->cluster()->drop_session(tasks_->session());
    tasks_->cluster()->channels().notify();
    for (const auto& [task, incarnation] : tasks_->incarnations()) try {
        auto c = tasks_->cluster()->links().standing(task);
        if (c && c->peer().incarnation == incarnation)
          c->post(wire::pack(wire::drop_session{tasks_->session()}));
      } catch (const error&) {
        // A lost task has dropped it.
      }
  }

  void reset(const std::string& container) override {
    tasks_->await({}, [&](auto then) { begin_reset(container, read::here, std::move(then)); });
  }
  void reset(const std::string& container, failure_callback then) override {
    begin_reset(container, read::in_background, std::move(then));
  }

 private:
  /// Which thread reads the answers: the caller's, which waits, or one of the worker's.
  enum class read { here, in_background };
  std::shared_ptr<worker::background_reads> reads_by(read by) const {
    return by == read::here ? nullptr
                            : std::make_shared<worker::background_reads>(tasks_->cluster());
  }

  void begin_plan(flat_graph flat, const plan_limits& limits, read by, plan_callback then) {
    tasks_->check_open();
    const std::size_t fetches = flat.fetches.size();
    auto made = run_passes(std::move(flat), limits, tasks_->options().log_device_placement);
    auto plan = std::make_shared<master_plan>(tasks_, std::move(made.parts), fetches);
    if (plan->is_local()) return then(nullptr, std::move(plan));
    plan->register_parts(limits.until, [plan, reads = reads_by(by), then = std::move(then)](
                                           const std::shared_ptr<const error>& failure) {
      then(failure, failure ? nullptr : plan);
    });
  }

  /// All links come first: if one task cannot be reached, no other is asked.
  void begin_reset(const std::string& container, read by, failure_callback then) {
    tasks_->check_open();
    auto others = all_tasks();
    std::erase(others, tasks_->self_name());
    auto ask = [tasks = tasks_, container, then](const std::vector<std::shared_ptr<channel>>& links,
                                                 std::shared_ptr<const error> failure) {
      std::vector<task_directory::task_call> calls;
      if (!failure)
        failure = failure_of([&] {
          tasks->self().store().clear(container);
          for (const auto& c : links) calls.push_back({c, wire::pack(wire::reset{container})});
        });
      if (failure) return then(std::move(failure));
      tasks->when_answered(std::move(calls), no_deadline, then);
    };
    tasks_->when_learned(others, {},
                         [tasks = tasks_, others, then = std::move(then), ask = std::move(ask),
                          reads = reads_by(by)](std::shared_ptr<const error> failure) {
                           failure ? then(std::move(failure))
                                   : tasks->when_linked(others, no_deadline, ask);
                         });
  }

  plan::prepared run_passes(flat_graph flat, const plan_limits& limits, bool log) {
    const std::vector<placement> needed = tasks_of(flat.graph);
    tasks_->learn(needed, limits);
    check_operations(flat.graph);
    std::vector<device_info> there = tasks_->devices_of(needed);
    std::ranges::sort(there, {}, [](const device_info& d) { return to_string(*d.name); });
    const session_options& o = tasks_->options();
    return plan::run_passes(std::move(flat), there,
                            {.own_task = tasks_->self_name(),
                             .fold = o.fold,
                             .fuse = o.fuse,
                             .allow_soft_placement = o.allow_soft_placement,
                             .log_device_placement = log},
                            evaluate_on_host);
  }

  std::vector<placement> all_tasks() const {
    if (!tasks_->cluster() || tasks_->cluster()->cluster().empty()) return {tasks_->self_name()};
    std::vector<placement> names;
    for (const auto& n : tasks_->cluster()->cluster().task_names()) names.push_back(intern(n));
    return names;
  }

  /// The task that a node's requested device names, if it names one.
  std::optional<device_name> task_of(const node_def& n) const {
    if (!n.requested || (n.requested->job.empty() && !n.requested->task)) return {};
    const device_name& own = tasks_->self().name();
    device_name task = n.requested->task_name();
    if (task.job.empty()) task.job = own.job;
    if (!task.replica) task.replica = 0;
    if (!task.task) task.task = task.job == own.job ? own.task : 0;
    return task;
  }

  /// Throws unimplemented for a node of an operation that the program of its task does not have.
  void check_operations(const graph_def& g) const {
    if (!tasks_->cluster()) return;
    each_node(g, [&](const node_def& n) {
      if (const auto task = task_of(n); task && *task != tasks_->self().name())
        if (const auto link = tasks_->cluster()->links().standing(intern(*task)))
          check_knows(link->peer(), n);
    });
  }

  /// This task, and those that the nodes' requested devices name: only they are contacted.
  std::vector<placement> tasks_of(const graph_def& g) const {
    std::set<placement> wanted{tasks_->self_name()};
    if (tasks_->cluster())
      each_node(g, [&](const node_def& n) {
        const auto named = task_of(n);
        if (!named) return;
        const device_name& task = *named;
        if (*task.replica == 0 && *task.task < tasks_->cluster()->cluster().tasks(task.job))
          wanted.insert(intern(task));
        else if (!tasks_->options().allow_soft_placement)
          throw error(errc::invalid_argument,
                      str("[", written_op(n), "] the requested device \"", to_string(*n.requested),
                          "\" is not on a task of the cluster, which is ",
                          to_string(tasks_->cluster()->cluster()),
                          *task.replica == 0 ? "" : ", all of replica 0"),
                      n.name, n.location);
      });
    return {wanted.begin(), wanted.end()};
  }

  std::shared_ptr<task_directory> tasks_;
};

}  // namespace

std::shared_ptr<master_engine> make_master(std::shared_ptr<task_runtime> self,
                                           std::shared_ptr<worker> cluster,
                                           session_options options) {
  check_not_forked();
  if (options.intra_op_threads < 0 || options.intra_op_threads > most_intra_op_threads)
    fail(errc::invalid_argument, "intra_op_threads must be 0 to ", most_intra_op_threads, ", not ",
         options.intra_op_threads);
  if (options.timeout.count() < 0)
    fail(errc::invalid_argument, "the timeout of a session must not be negative");
  if (options.intra_op_threads) set_intra_op_threads(options.intra_op_threads);
  auto tasks =
      std::make_shared<task_directory>(std::move(self), std::move(cluster), std::move(options));
  if (tasks->cluster()) tasks->cluster()->add_master(tasks->session(), tasks);
  return std::make_shared<cluster_master>(std::move(tasks));
}

}  // namespace deft::ext
