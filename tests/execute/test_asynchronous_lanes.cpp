// SPDX-License-Identifier: Apache-2.0
// How lanes of asynchronous devices (delayed_device.hpp) start work and wait, in frames that run
// without a session.
#include <deft/execute/evaluate.hpp>
#include <deft/execute/frame_pool.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/train/optimizers.hpp>

#include "delayed_device.hpp"

using namespace deft;
using testing::simulated_gpus;
using testing::with_slow_devices;

namespace {

/// A run without a thread that waits for it.
class unattended final : public step_driver {
 public:
  explicit unattended(executable::frame& f) : frame_(f) {}
  void wake(std::uint32_t lane) override {
    ++wakes;
    frame_.resume(lane);
  }
  void ended() override {
    over_ = true;
    over_.notify_all();
  }
  void wait() { over_.wait(false); }
  std::atomic<int> wakes{0};
  bool over() const { return over_; }

 private:
  executable::frame& frame_;
  std::atomic<bool> over_{false};
};

plan::part part_of(const any_tensor& fetch, const any_tensor& feed) {
  const output f[] = {fetch.handle()}, d[] = {feed.handle()};
  flat_graph flat = flatten(f, d);
  for (auto& n : flat.graph.nodes)
    n.device = intern(merge(merge(local_task_name(), parse_device("/cpu:0")),
                            n.requested ? *n.requested : device_name()));
  return plan::cut(flat.graph, flat.fetches).at(0);
}

}  // namespace

TEST_CASE_FIXTURE(with_slow_devices, "one thread keeps two slow devices busy") {
  placeholder<float, 64> x("x");
  auto on_device = [&](const char* where) {
    return on(device(where), [&] { return any_tensor(exp(x) * 2 + 1); });
  };
  task_runtime task(local_task_name(), 1);
  executable first(part_of(on_device("/slow:0"), any_tensor(x)), task.resources());
  executable second(part_of(on_device("/slow:1"), any_tensor(x)), task.resources());
  auto a = first.make_frame(), b = second.make_frame();
  unattended one(*a), other(*b);
  ndarray<float, 64> zero;
  const feed_ref feeds[] = {{zero.data(), dims{64}, dtype::float32, {}}};
  const step_context context{.step = 1};
  simulated_gpus().hold();
  CHECK_FALSE(a->start(feeds, context, one));
  CHECK_FALSE(b->start(feeds, context, other));
  CHECK_FALSE(one.over());
  CHECK_FALSE(other.over());
  simulated_gpus().go_on();
  one.wait(), other.wait();
  CHECK(one.wakes == 1);  // once, at the end
  CHECK(a->failure() == nullptr);
  CHECK(a->peek(0).data<float>()[63] == 3.f);
  CHECK(b->peek(0).data<float>()[63] == 3.f);
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a training step parks once, at its end, and allocates nothing") {
  for (const bool slots : {false, true}) {
    CAPTURE(slots);
    graph own;
    auto in_own = as_default(own);
    placeholder<float, 16, 8> x("x");
    placeholder<std::int32_t, 16> label("label");
    auto scope = on(device("/slow:0"));
    variable<float, 8, 12> w1("w1", truncated_normal(0.5f));
    variable<float, 12> b1("b1", zeros());
    variable<float, 12, 4> w2("w2", truncated_normal(0.5f));
    variable<float, 4> b2("b2", zeros());
    tensor<float, 16, 4> logits = matmul(relu(matmul(x, w1) + b1), w2) + b2;
    auto loss = mean(softmax_cross_entropy(logits, label));
    operation step = slots ? adagrad(0.1f).minimize(loss) : sgd(0.1f).minimize(loss);
    task_runtime task(local_task_name(), 1);
    auto compiled = [&](std::span<const output> fetches, std::span<const output> feeds) {
      plan::prepared p = plan::run_passes(flatten(fetches, feeds), task.devices(),
                                          {.own_task = intern(task.name())}, &evaluate_on_host);
      return executable(std::move(p.parts.at(0)), task.resources());
    };
    const output init[] = {{initialize_all().handle(), run_only}};
    compiled(init, {}).make_frame()->run({}, {.step = 1});

    const output fetches[] = {any_tensor(loss).handle(), {step.handle(), run_only}};
    const output fed[] = {any_tensor(x).handle(), any_tensor(label).handle()};
    executable code = compiled(fetches, fed);
    auto frame = code.make_frame();
    ndarray<float, 16, 8> images;
    ndarray<std::int32_t, 16> labels;
    for (int r = 0; r < 16; ++r) {
      for (int c = 0; c < 8; ++c) images(r, c) = static_cast<float>((r * 7 + c * 3) % 11) / 11;
      labels(r) = r % 4;
    }
    const feed_ref feeds[] = {{images.data(), dims{16, 8}, dtype::float32, {}},
                              {labels.data(), dims{16}, dtype::int32, {}}};
    REQUIRE(std::ranges::equal(code.feeds(), std::array{0u, 1u}));
    float last = 100;
    for (int i = 0; i < 6; ++i) {
      simulated_gpus().reset_counts();
      simulated_gpus().hold();
      unattended run(*frame);
      const step_context context{.step = 2};
      CHECK_FALSE(frame->start(feeds, context, run));
      // All work has been started, and the lane waits only for its end.
      const std::size_t launches = simulated_gpus().launches;
      CHECK(launches > 4);
      CHECK(simulated_gpus().copies_in == 2);
      CHECK(simulated_gpus().copies_out == 1);
      simulated_gpus().go_on();
      run.wait();
      CHECK(frame->failure() == nullptr);
      CHECK(run.wakes == 1);
      CHECK(simulated_gpus().launches == launches);
      CHECK(simulated_gpus().blocked == 0);
      if (i > 1) CHECK(simulated_gpus().allocations == 0);
      CHECK(*frame->peek(0).data<float>() < last);
      last = *frame->peek(0).data<float>();
    }
  }
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "nodes that depend on a device's work wait until it is done, not only started") {
  /// Whether the item of that name has begun.
  struct watch final : step_observer {
    void begin(const node_label& n, std::uint32_t) override {
      if (n.op->name == "tanh") begun = true;
    }
    void end(const node_label&, std::uint32_t) override {}
    std::atomic<bool> begun{false};
  };
  for (const char* there : {"/cpu:0", "/slow:1"}) {
    CAPTURE(there);
    graph own;
    auto in_own = as_default(own);
    placeholder<float, 64> x("x");
    const any_tensor before = on(device("/slow:0"), [&] { return any_tensor(exp(x)); });
    control_scope waits({before.handle().node});
    const any_tensor after = on(device(there), [&] { return tanh(any_tensor(x)); });
    task_runtime task(local_task_name(), 1);
    executable code(part_of(after, any_tensor(x)), task.resources());
    auto frame = code.make_frame();
    watch w;
    ndarray<float, 64> zero;
    const feed_ref feeds[] = {{zero.data(), dims{64}, dtype::float32, {}}};
    for (int i = 0; i < 2; ++i) {
      w.begun = false;
      simulated_gpus().hold();
      unattended once(*frame);
      const step_context context{.step = 1, .observer = &w};
      CHECK_FALSE(frame->start(feeds, context, once));
      CHECK_FALSE(w.begun);
      simulated_gpus().go_on();
      once.wait();
      CHECK(w.begun);
      CHECK(frame->failure() == nullptr);
      CHECK(frame->peek(0).data<float>()[63] == 0.f);
      frame->release();
    }
  }
}
