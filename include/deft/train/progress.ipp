// SPDX-License-Identifier: Apache-2.0
// deft/train/progress.ipp: progress on standard output.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <deft/core/text.hpp>
#include <deft/op/global_step.hpp>
#include <deft/session/launch/launcher.hpp>
#include <deft/train/progress.hpp>
#include <string>

namespace deft {
namespace {

class progress_hook final : public hook {
 public:
  progress_hook(any_tensor loss, std::int64_t last, std::int64_t batch)
      : loss_(std::move(loss)), last_(last), batch_(batch), terminal_(isatty(STDOUT_FILENO)) {}

  void begin() override { detail::expect_global_step("show_progress"); }
  run_arguments before_run(run_context&) override {
    return {.fetches = {loss_}, .global_step = true};
  }

  void after_run(run_context& context, std::span<const any_array> values) override {
    loss_value_ = ext::visit_dtype(
        values[0].type(), [&]<class T>() { return static_cast<double>(values[0].item<T>()); });
    step_value_ = context.global_step();
    ++runs_;
    auto now = clock::now();
    if (runs_ == 1) began_ = now;
    ended_ = context.stop_requested();
    if (runs_ == 1 || ended_ || now - shown_ >= (terminal_ ? often : seldom)) show(now);
    if (ended_) finish();
  }
  void end(run_context&) override {
    if (!runs_ || ended_) return;
    show(clock::now());
    finish();
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds often{500}, seldom{3000};

  /// The same under every locale.
  static std::string rounded(double v, int digits) {
    char text[400];
    return {text, std::to_chars(text, text + sizeof text, v, std::chars_format::fixed, digits).ptr};
  }
  void finish() {
    if (terminal_) std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  void show(clock::time_point now) {
    shown_ = now;
    double seconds = std::chrono::duration<double>(now - began_).count();
    double rate = seconds > 0 ? static_cast<double>((runs_ - 1) * batch_) / seconds : 0;
    if (terminal_) std::printf("\r%s ", progress_bar(step_value_, last_).c_str());
    // Several workers may run the global step a little beyond the last.
    std::string line = ext::str("step ", std::min(step_value_, last_), "/", last_, "  loss ",
                                rounded(loss_value_, 4));
    if (runs_ > 1) line += ext::str("  ", rounded(rate, 0), " examples/s");
    line += terminal_ ? "\x1b[K" : "\n";
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
  }

  any_tensor loss_;
  std::int64_t last_, batch_;
  bool terminal_, ended_ = false;
  std::int64_t runs_ = 0, step_value_ = 0;
  double loss_value_ = 0;
  clock::time_point began_, shown_;
};

}  // namespace

hook_ref show_progress(const any_tensor& loss, std::int64_t last_step, std::int64_t batch_size) {
  detail::expect_numbers("show_progress", loss);
  return std::make_shared<progress_hook>(loss, last_step, batch_size);
}

}  // namespace deft
