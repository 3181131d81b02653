// SPDX-License-Identifier: Apache-2.0
// tests/execute/training_step.hpp: a step of training on an asynchronous device, in a frame that
// runs without a session, and without a thread that waits for it.
#pragma once
#include <deft/kernels/constant_folding.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/train/optimizers.hpp>

#include <array>
#include <atomic>
#include <memory>

#include "op/modeling.hpp"

namespace testing {

/// A run without a thread that waits for it.
class unattended final : public deft::ext::step_driver {
 public:
  explicit unattended(deft::ext::executable::frame& f) : frame_(f) {}
  void wake(std::uint32_t lane) override {
    ++wakes;
    frame_.resume(lane);
  }
  void ended() override {
    over_ = true;
    over_.notify_all();
  }
  void wait() { over_.wait(false); }
  std::atomic<int> wakes{0};  ///< how often the run has waited
  bool over() const { return over_; }

 private:
  deft::ext::executable::frame& frame_;
  std::atomic<bool> over_{false};
};

/// A classifier of two layers, whose loss is fetched.
class training_step {
 public:
  /// `slots`: the optimizer has some.
  training_step(const char* where, bool slots, const deft::ext::device_settings& settings = {})
      : task_(deft::ext::local_task_name(), settings) {
    using namespace deft;
    using namespace deft::ext;
    placeholder<float, 16, 8> x("x");
    placeholder<std::int32_t, 16> label("label");
    auto scope = on(device(where));
    variable<float, 8, 12> w1("w1", truncated_normal(0.5f));
    variable<float, 12> b1("b1", zeros());
    variable<float, 12, 4> w2("w2", truncated_normal(0.5f));
    variable<float, 4> b2("b2", zeros());
    tensor<float, 16, 4> logits = matmul(relu(matmul(x, w1) + b1), w2) + b2;
    auto loss = mean(softmax_cross_entropy(logits, label));
    operation step = slots ? adagrad(0.1f).minimize(loss) : sgd(0.1f).minimize(loss);
    const output init[] = {{initialize_all().handle(), run_only}};
    compiled(init, {}).make_frame()->run({}, {.step = 1});
    const output fetches[] = {any_tensor(loss).handle(), {step.handle(), run_only}};
    const output fed[] = {any_tensor(x).handle(), any_tensor(label).handle()};
    code_.reset(new executable(compiled(fetches, fed)));  // it cannot be moved
    REQUIRE(std::ranges::equal(code_->feeds(), std::array{0u, 1u}));
    frame_ = code_->make_frame();
    for (int r = 0; r < 16; ++r) {
      for (int c = 0; c < 8; ++c) images_(r, c) = static_cast<float>((r * 7 + c * 3) % 11) / 11;
      labels_(r) = r % 4;
    }
  }

  deft::ext::executable::frame& frame() { return *frame_; }
  /// Returns whether the run has ended.
  bool start(unattended& run) { return frame_->start(feeds_, context_, run); }
  float loss() { return *frame_->peek(0).data<float>(); }

 private:
  deft::ext::executable compiled(std::span<const deft::ext::output> fetches,
                                 std::span<const deft::ext::output> feeds) {
    deft::ext::plan::prepared p = deft::ext::plan::run_passes(
        deft::ext::flatten(fetches, feeds), task_.devices(),
        {.own_task = deft::ext::intern(task_.name())}, &deft::ext::evaluate_on_host);
    return deft::ext::executable(std::move(p.parts.at(0)), task_.resources());
  }

  own_graph own_;
  deft::ext::task_runtime task_;
  std::unique_ptr<deft::ext::executable> code_;
  std::unique_ptr<deft::ext::executable::frame> frame_;
  deft::ndarray<float, 16, 8> images_;
  deft::ndarray<std::int32_t, 16> labels_;
  const deft::ext::feed_ref feeds_[2] = {
      {images_.data(), deft::dims{16, 8}, deft::dtype::float32, {}},
      {labels_.data(), deft::dims{16}, deft::dtype::int32, {}}};
  const deft::ext::step_context context_{.step = 2};
};

}  // namespace testing
