// SPDX-License-Identifier: Apache-2.0
// deft/train/hook.ipp: the hooks that come with deft.
#pragma once
#include <cmath>
#include <deft/core/log.hpp>
#include <deft/op/global_step.hpp>
#include <deft/session/session.hpp>
#include <deft/train/hook.hpp>
#include <optional>

namespace deft {
namespace {

class stop_at_step_hook final : public hook {
 public:
  explicit stop_at_step_hook(ext::step_limit limit) : limit_(limit), last_(limit.last_step) {}
  void begin() override {
    step_ = any_tensor(detail::expect_global_step("stop_at_step"));
    if ((limit_.last_step > 0) == (limit_.num_steps > 0))
      ext::fail(errc::invalid_argument,
                "[stop_at_step] expects a last step or a number of steps above 0");
  }
  void after_create(run_context& context) override {
    const std::int64_t now = step_now(context);
    if (last_ == 0) last_ = now + limit_.num_steps;
    if (now >= last_) context.request_stop();  // as where a job that has ended is started again
  }
  run_arguments before_run(run_context&) override { return {.global_step = true}; }
  void after_run(run_context& context, std::span<const any_array>) override {
    warn_if_not_counted(context.global_step());
    if (context.global_step() >= last_) context.request_stop();
  }

 private:
  std::int64_t step_now(run_context& context) const {
    const any_array now = context.session().run(step_, context.location());
    return now.item<std::int64_t>();
  }
  void warn_if_not_counted(std::int64_t step) {
    constexpr int many = 100;
    still_ = step == seen_ ? still_ + 1 : 0;
    seen_ = step;
    if (still_ == many)
      logging::warning("stop_at_step: the global step was ", step, " in ", many,
                       " runs; does the training count it, as in minimize(loss, global_step())?");
  }

  ext::step_limit limit_;
  std::int64_t last_, seen_ = -1;
  int still_ = 0;  ///< runs in a row that found the same step
  any_tensor step_;
};

class stop_on_nan_hook final : public hook {
 public:
  stop_on_nan_hook(any_tensor loss, bool fails) : loss_(std::move(loss)), fails_(fails) {}
  void begin() override { step_ = graph_of(loss_).find_variable("global_step"); }
  run_arguments before_run(run_context&) override { return {.fetches = {loss_}}; }
  void after_run(run_context& context, std::span<const any_array> values) override {
    bool nan = ext::visit_dtype(values[0].type(), [&]<class T>() {
      for (T v : values[0].span<T>())
        if (v != v) return true;
      return false;
    });
    if (!nan) return;
    // Read now, not in every run.
    const std::string at =
        step_
            ? ext::str(" at global step ", context.session().run(any_tensor(ext::output{step_, 0})))
            : std::string();
    if (fails_)
      throw error(errc::invalid_argument, "the loss is not a number" + at, name_of(loss_),
                  loss_.handle().node->location());
    logging::log(logging::level::error, "the loss \"", name_of(loss_), "\" is not a number", at,
                 ": stopping");
    context.give_up();
  }

 private:
  any_tensor loss_;
  bool fails_;
  ext::node_ref step_;  ///< null if the graph counts none
};

}  // namespace

hook_ref stop_at_step(ext::step_limit limit) { return std::make_shared<stop_at_step_hook>(limit); }
hook_ref stop_at_step(std::int64_t last) { return stop_at_step({.last_step = last}); }
hook_ref stop_on_nan(const any_tensor& loss, bool fail) {
  detail::expect_numbers("stop_on_nan", loss);
  return std::make_shared<stop_on_nan_hook>(loss, fail);
}

void detail::expect_numbers(std::string_view function, const any_tensor& loss) {
  if (!ext::is_numeric(loss.type()))
    throw error(
        errc::invalid_argument,
        ext::str("[", function, "] expects a loss of numbers, and got ", loss.type(), loss.shape()),
        name_of(loss), loss.handle().node->location());
}

}  // namespace deft
