// SPDX-License-Identifier: Apache-2.0
// deft/session/master.ipp: making plans for several tasks.
#pragma once
#include <algorithm>
#include <deft/execute/evaluate.hpp>
#include <deft/execute/team.hpp>
#include <deft/session/master.hpp>
#include <deft/session/master_plan.hpp>
#include <set>

namespace deft {
namespace {

class master_engine final : public engine {
 public:
  explicit master_engine(std::shared_ptr<master_state> m) : master_(std::move(m)) {}
  ~master_engine() override { master_engine::close(); }

  std::shared_ptr<planned> make_plan(flat_graph flat, const plan_limits& limits) override {
    master_->check_open();
    std::size_t fetches = flat.fetches.size();
    auto made = run_passes(std::move(flat), limits, master_->options.log_device_placement);
    auto plan = std::make_shared<master_plan>(master_, std::move(made.parts), fetches);
    plan->register_parts();
    return plan;
  }

  plan_description describe(flat_graph flat, const plan_limits& limits) override {
    master_->check_open();
    auto made = run_passes(std::move(flat), limits, false);
    return {std::move(made.placed), std::move(made.passes), std::move(made.apart)};
  }

  std::vector<device_info> devices() override {
    const auto named = tasks();
    master_->reach({named.begin(), named.end()}, {});
    std::vector<device_info> all;
    for (auto task : named)
      for (const auto& d : master_->devices_of(task)) all.push_back(d);
    return all;
  }

  void close() override {
    if (!master_->closing.request_stop() || !master_->cluster) return;
    master_->cluster->drop_session(master_->session);
    master_->cluster->hub().notify();
    std::map<placement, std::uint64_t> known;
    {
      std::lock_guard lock(master_->guard);
      known = master_->incarnations;
    }
    for (const auto& [task, incarnation] : known) try {
        auto c = master_->cluster->standing_link(task);
        if (c && c->peer().incarnation == incarnation)
          c->post(make_message(request::drop_session, master_->session));
      } catch (const error&) {
        // A task that is lost has dropped it.
      }
  }

  void reset(const std::string& container) override {
    master_->check_open();
    for (auto task : tasks()) {
      if (*task == master_->self->name()) {
        master_->self->store().clear(container);
        continue;
      }
      message m = make_message(request::reset, master_->session);
      m.meta = to_bytes(container);
      master_->ask(task, std::move(m));
    }
  }

 private:
  plan::prepared run_passes(flat_graph flat, const plan_limits& limits, bool log) {
    std::vector<device_info> there = devices_for(flat.graph, limits);
    const session_options& o = master_->options;
    return plan::run_passes(std::move(flat), there,
                            {.own_task = intern(master_->self->name()),
                             .fold = o.fold,
                             .fuse = o.fuse,
                             .allow_soft_placement = o.allow_soft_placement,
                             .log_device_placement = log},
                            evaluate_on_host);
  }

  std::vector<placement> tasks() const {
    if (!master_->cluster || master_->cluster->cluster().empty())
      return {intern(master_->self->name())};
    std::vector<placement> names;
    for (const auto& n : master_->cluster->cluster().task_names()) names.push_back(intern(n));
    return names;
  }

  /// Devices of the own task, and of those that the graph's requests name: only they are contacted.
  std::vector<device_info> devices_for(const graph_def& g, const plan_limits& limits) {
    std::set<placement> wanted{intern(master_->self->name())};
    if (master_->cluster)
      for (const auto& n : g.nodes) {
        if (!n.requested || (n.requested->job.empty() && !n.requested->task)) continue;
        device_name task = n.requested->task_name();
        if (task.job.empty()) task.job = master_->self->name().job;
        if (!task.replica) task.replica = 0;
        if (!task.task)
          task.task = task.job == master_->self->name().job ? master_->self->name().task : 0;
        if (*task.task < master_->cluster->cluster().tasks(task.job))
          wanted.insert(intern(task));
        else if (!master_->options.allow_soft_placement)
          throw error(errc::invalid_argument,
                      str("[", n.op->name, "] is asked to run on \"", to_string(*n.requested),
                          "\", which is no task of the cluster (",
                          to_string(master_->cluster->cluster()), ")"),
                      n.name, n.place);
      }
    master_->reach(wanted, limits);
    std::vector<device_info> all;
    for (auto task : wanted)
      for (const auto& d : master_->devices_of(task)) all.push_back(d);
    std::ranges::sort(all, {}, [](const device_info& d) { return to_string(*d.name); });
    return all;
  }

  std::shared_ptr<master_state> master_;
};

}  // namespace

std::shared_ptr<engine> make_master(std::shared_ptr<task_runtime> self,
                                    std::shared_ptr<worker> cluster, session_options options) {
  if (options.intra_op_threads) set_intra_op_threads(options.intra_op_threads);
  auto m = std::make_shared<master_state>();
  m->self = std::move(self);
  m->cluster = std::move(cluster);
  m->options = std::move(options);
  if (!m->options.stream) m->options.stream = 0;
  m->next_step = m->options.first_step;
  if (m->cluster) m->incarnations = m->cluster->standing();
  return std::make_shared<master_engine>(std::move(m));
}

}  // namespace deft
