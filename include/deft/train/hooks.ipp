// SPDX-License-Identifier: Apache-2.0
// deft/train/hooks.ipp: what the hooks do at which global step.
#pragma once
#include <cmath>
#include <deft/core/file.hpp>
#include <deft/core/log.hpp>
#include <deft/observe/chrome_trace.hpp>
#include <deft/op/global_step.hpp>
#include <deft/session/launch/task.hpp>
#include <deft/train/due_steps.hpp>
#include <deft/train/hooks.hpp>
#include <deft/train/saver.hpp>
#include <filesystem>
#include <optional>

namespace deft {
namespace {

using clock = std::chrono::steady_clock;

/// Learns the global step of every run.
class stepping_hook : public hook {
 public:
  stepping_hook(std::string_view name, std::int64_t every) : name_(name), every_(every) {}
  void begin() override {
    if (every_ < 0) ext::fail(errc::invalid_argument, "[", name_, "] expects a number of steps");
    step_.emplace(any_tensor(detail::expect_global_step(name_)).handle().node);
  }
  run_arguments before_run(run_context&) override { return {.global_step = true}; }

 protected:
  std::int64_t step_now(run_context& context) {
    return context.session()
        .run(any_tensor(step_->handle()), context.location())
        .item<std::int64_t>();
  }

  std::string_view name_;
  std::int64_t every_;
  std::optional<any_variable> step_;
};

class checkpoint_hook final : public stepping_hook {
 public:
  checkpoint_hook(std::string directory, checkpoint_policy policy)
      : stepping_hook("save_checkpoints", policy.every_steps),
        path_((std::filesystem::path(directory) / policy.name).string()),
        policy_(std::move(policy)) {}
  void begin() override {
    stepping_hook::begin();
    saver_.emplace(saver_options{.max_to_keep = policy_.max_to_keep,
                                 .keep_every_hours = policy_.keep_every_hours});
  }
  void after_create(run_context& context) override {
    if (!context.self().is_chief()) return;
    const std::int64_t step = step_now(context);
    const auto [directory, name] = ext::split_path(path_);
    if (ext::split_path(latest_checkpoint(directory, name)).second == ext::str(name, "-", step))
      saved_ = step, when_ = clock::now();  // it was restored from there
    else
      save(context);
  }
  run_arguments before_run(run_context& context) override {
    return {.global_step = context.self().is_chief()};
  }
  void after_run(run_context& context, std::span<const any_array>) override {
    if (!context.self().is_chief()) return;
    const bool enough = every_ > 0 && context.global_step() - saved_ >= every_;
    const bool long_ago = policy_.interval.count() > 0 && clock::now() - when_ >= policy_.interval;
    if (enough || long_ago) save(context);
  }
  void end(run_context& context) override {
    if (context.self().is_chief()) save(context);
  }

 private:
  void save(run_context& context) {
    if (context.given_up()) return;
    const std::int64_t step = step_now(context);
    when_ = clock::now();
    if (step == saved_) return;
    const std::string path = saver_->save(context.session(), path_, *step_, context.location());
    logging::info("saved ", path);
    saved_ = std::stoll(path.substr(path_.size() + 1));  // others may have trained meanwhile
  }

  std::string path_;
  checkpoint_policy policy_;
  std::optional<saver> saver_;
  std::int64_t saved_ = -1;
  clock::time_point when_;
};

class log_hook final : public stepping_hook {
 public:
  log_hook(std::vector<std::pair<std::string, any_tensor>> tensors, std::int64_t every)
      : stepping_hook("log_tensors", every), tensors_(std::move(tensors)), due_(every) {}
  void after_create(run_context&) override { due_.restart(); }
  run_arguments before_run(run_context&) override {
    run_arguments a{.global_step = true};
    if (due_.next())
      for (const auto& [name, t] : tensors_) a.fetches.push_back(t);
    return a;
  }
  void after_run(run_context& context, std::span<const any_array> values) override {
    const std::int64_t step = context.global_step();
    const bool fetched = due_.next();
    if (fetched) {
      std::string text = ext::str("step ", step);
      for (std::size_t i = 0; i < tensors_.size(); ++i)
        text += ext::str(i ? ", " : ": ", tensors_[i].first, " = ", values[i]);
      logging::info(text);
    }
    due_.ran(step, fetched);
  }

 private:
  std::vector<std::pair<std::string, any_tensor>> tensors_;
  detail::due_steps due_;
};

class counting_hook final : public stepping_hook {
 public:
  explicit counting_hook(std::int64_t every) : stepping_hook("count_steps", every) {}
  void after_create(run_context& context) override { restart(step_now(context)); }
  void after_run(run_context& context, std::span<const any_array>) override {
    const std::int64_t step = context.global_step();
    if (step - from_ < every_) return;
    const double seconds = std::chrono::duration<double>(clock::now() - since_).count();
    logging::info("step ", step, ": ",
                  std::round(10 * static_cast<double>(step - from_) / seconds) / 10,
                  " steps a second");
    restart(step);
  }

 private:
  void restart(std::int64_t step) { from_ = step, since_ = clock::now(); }

  std::int64_t from_ = 0;
  clock::time_point since_;
};

class tracing_hook final : public stepping_hook {
 public:
  tracing_hook(std::string directory, std::int64_t every)
      : stepping_hook("save_traces", every), directory_(std::move(directory)), due_(every) {}
  void begin() override {
    stepping_hook::begin();
    std::error_code e;
    std::filesystem::create_directories(directory_, e);
    if (e)
      ext::fail_system(e.value(), ext::str("[save_traces] cannot make the directory \"",
                                           directory_.string(), "\""));
  }
  void after_create(run_context&) override { due_.restart(); }
  run_arguments before_run(run_context&) override {
    return {.global_step = true, .trace = due_.next() ? &trace_ : nullptr};
  }
  void after_run(run_context& context, std::span<const any_array>) override {
    const std::int64_t step = context.global_step();
    const bool traced = due_.next();
    if (traced) {
      const task& self = context.self();
      const std::string of = self.distributed() ? ext::str(self.job(), "-", self.index(), "-") : "";
      write_chrome_trace((directory_ / ext::str("trace-", of, step, ".json")).string(), trace_);
      trace_.events.clear();
    }
    due_.ran(step, traced);
  }

 private:
  const std::filesystem::path directory_;
  step_trace trace_;
  detail::due_steps due_;
};

class final_hook final : public hook {
 public:
  explicit final_hook(operation op) : op_(std::move(op)) {}
  void end(run_context& context) override { context.session().run(op_, context.location()); }

 private:
  operation op_;
};

}  // namespace

hook_ref save_checkpoints(const std::string& directory, checkpoint_policy policy) {
  return std::make_shared<checkpoint_hook>(directory, std::move(policy));
}
hook_ref log_tensors(std::vector<std::pair<std::string, any_tensor>> tensors, std::int64_t every) {
  return std::make_shared<log_hook>(std::move(tensors), every);
}
hook_ref count_steps(std::int64_t every) { return std::make_shared<counting_hook>(every); }
hook_ref save_traces(const std::string& directory, std::int64_t every) {
  return std::make_shared<tracing_hook>(directory, every);
}
hook_ref run_at_end(operation op) { return std::make_shared<final_hook>(std::move(op)); }

}  // namespace deft
