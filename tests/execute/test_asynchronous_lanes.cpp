// SPDX-License-Identifier: Apache-2.0
// How lanes of asynchronous devices (delayed_device.hpp) start work and wait, in frames that run
// without a session.
#include <deft/execute/frame_pool.hpp>
#include <deft/kernels/constant_folding.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/train/optimizers.hpp>

#include "delayed_device.hpp"
#include "training_step.hpp"

using namespace deft;
using namespace deft::ext;
using testing::simulated_gpus;
using testing::training_step;
using testing::unattended;
using testing::with_slow_devices;

namespace {

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
  task_runtime task(local_task_name());
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
    training_step step("/slow:0", slots);
    float last = 100;
    for (int i = 0; i < 6; ++i) {
      simulated_gpus().reset_counts();
      simulated_gpus().hold();
      unattended run(step.frame());
      CHECK_FALSE(step.start(run));
      // All work has been started, and the lane waits only for its end.
      const std::size_t launches = simulated_gpus().launches;
      CHECK(launches > 4);
      CHECK(simulated_gpus().copies_in == 2);
      CHECK(simulated_gpus().copies_out == 1);
      simulated_gpus().go_on();
      run.wait();
      CHECK(step.frame().failure() == nullptr);
      CHECK(run.wakes == 1);
      CHECK(simulated_gpus().launches == launches);
      CHECK(simulated_gpus().blocked == 0);
      if (i > 1) CHECK(simulated_gpus().allocations == 0);
      CHECK(step.loss() < last);
      last = step.loss();
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
    task_runtime task(local_task_name());
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
