// SPDX-License-Identifier: Apache-2.0
// Devices whose work runs behind the caller's back, without a GPU: see delayed_device.hpp.
#include <deft/execute/evaluate.hpp>
#include <deft/execute/frame_pool.hpp>
#include <deft/plan/gradients.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/local_cluster.hpp>
#include <deft/session/session.hpp>
#include <deft/session/task_runtime.hpp>
#include <deft/train/optimizer.hpp>

#include "delayed_device.hpp"
#include "op/modeling.hpp"

using namespace deft;
using testing::device_delays;

namespace {

struct with_slow_devices : testing::own_graph {
  with_slow_devices() {
    [[maybe_unused]] static const bool once =
        (register_device_maker(&testing::make_delayed_devices), true);
    device_delays().longest_us = 0;
  }
  ~with_slow_devices() { device_delays().go_on(); }
};

/// Losses of a small classifier, trained on batches that change in size.
std::vector<float> train(const char* where, int steps, bool two_devices = false) {
  graph g;
  auto in_graph = as_default(g);
  set_seed(7);
  placeholder<float, dyn, 12> x("x");
  placeholder<std::int32_t, dyn> label("label");
  auto scope = on(device(where));
  variable<float, 12, 16> w1("w1", truncated_normal(0.5f));
  variable<float, 16> b1("b1", zeros());
  auto hidden = relu(matmul(x, w1) + b1);
  std::optional<deft::scope> second;
  if (two_devices) second.emplace(device("/slow:1"));
  variable<float, 16, 5> w2("w2", truncated_normal(0.5f));
  variable<float, 5> b2("b2", zeros());
  tensor<float, dyn, 5> logits = matmul(hidden, w2) + b2;
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto step = adagrad(0.1f).minimize(loss);
  session s;
  s.run(initialize_all());
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    const int n = 3 + 4 * (i % 3);
    ndarray<float, dyn, 12> images(n);
    ndarray<std::int32_t, dyn> labels(n);
    for (int r = 0; r < n; ++r) {
      for (int c = 0; c < 12; ++c) images(r, c) = static_cast<float>((r * 7 + c * 3 + i) % 11) / 11;
      labels(r) = (r + i) % 5;
    }
    auto l = s.run(loss, step, x = images, label = labels);
    losses.push_back(l);
  }
  return losses;
}

}  // namespace

TEST_CASE_FIXTURE(with_slow_devices, "a model on a slow device has the processor's bits") {
  const auto expected = train("/cpu:0", 12);
  REQUIRE(expected.size() == 12);
  for (int longest : {0, 50, 200}) {
    CAPTURE(longest);
    device_delays().longest_us = longest;
    CHECK(train("/slow:0", 12) == expected);
    CHECK(train("/slow:0", 12, true) == expected);
  }
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a random operation on a slow device has the processor's numbers") {
  auto draw = [](const char* where) {
    graph g;
    auto in_graph = as_default(g);
    set_seed(11);
    placeholder<float> scale("scale");
    auto [noise, scaled] = on(device(where), [&] {
      auto n = random_uniform(shape<100>);
      return std::pair(n, tensor<float, 100>(random_normal(shape<100>) * scale));
    });
    session s;
    std::vector<ndarray<float, 100>> drawn;
    for (int i = 0; i < 6; ++i) {
      auto [a, b] = s.run(noise, scaled, scale = 2.f);
      drawn.push_back(a), drawn.push_back(b);
    }
    return drawn;
  };
  const auto expected = draw("/cpu:0");
  for (std::size_t i = 2; i < expected.size(); ++i) CHECK(expected[i] != expected[i - 2]);
  for (int longest : {0, 100}) {
    device_delays().longest_us = longest;
    CHECK(draw("/slow:0") == expected);
  }
}

namespace {

/// The elements from the last to the first, by way of scratch memory.
struct reverse_op {
  static constexpr std::string_view name = "test_reverse";
  static constexpr int arity = 1;
  tensor_type infer(std::span<const tensor_type> in) const { return in[0]; }
};
struct reverse_kernel final : kernel {
  void prepare(std::span<const tensor_type> in, std::span<const tensor_type>) override {
    n = in[0].shape.elements();
  }
  void run(const kernel_call& c) override {
    const auto* in = static_cast<const float*>(c.in[0]);
    auto *out = static_cast<float*>(c.out[0]), *between = static_cast<float*>(c.scratch);
    auto apart = [&](const float* p) { return between + n <= p || p + n <= between; };
    if (!apart(in) || !apart(out)) fail(errc::internal, "[test_reverse] scratch is a value's");
    std::copy(in, in + n, between);
    std::reverse_copy(between, between + n, out);
  }
  std::size_t scratch() const override { return static_cast<std::size_t>(n) * sizeof(float); }
  std::int64_t n = 0;
};
const bool registered = [] {
  static constexpr kernel_entry table[] = {
      {reverse_op::name, all_dtypes,
       [](const node_def&, std::span<const tensor_type>) -> kernel_ptr {
         return std::make_unique<reverse_kernel>();
       }},
  };
  register_op(record_of<reverse_op>);
  register_cpu_kernels(table);
  return true;
}();
any_tensor reversed(const any_tensor& x) {
  const output in[] = {x.handle()};
  return detail::add_node(record_of<reverse_op>, {}, in, here());
}

}  // namespace

TEST_CASE_FIXTURE(with_slow_devices, "a kernel has scratch memory of its own on its device") {
  placeholder<float, dyn> x("x");
  auto on_device = [&](const char* where) {
    return on(device(where), [&] { return reversed(reversed(reversed(any_tensor(x)) * 2) + 1); });
  };
  const any_tensor one = on_device("/slow:0"), other = on_device("/slow:1");
  const any_tensor host = on_device("/cpu:0");
  session s;
  for (int longest : {0, 50})
    for (int i = 0; i < 12; ++i) {
      device_delays().longest_us = longest;
      ndarray<float, dyn> v(5 + 1000 * (i % 4));
      for (std::int64_t k = 0; k < v.size(); ++k) v(k) = static_cast<float>(k + i);
      auto [a, b, c] = s.run(one, other, host, x = v);
      for (std::int64_t k = 0; k < v.size(); ++k) {
        REQUIRE(c.data<float>()[k] == 2 * v(v.size() - 1 - k) + 1);
        REQUIRE(a.data<float>()[k] == c.data<float>()[k]);
        REQUIRE(b.data<float>()[k] == c.data<float>()[k]);
      }
    }
  for (int i = 0; i < 5; ++i) {
    device_delays().reset();
    static_cast<void>(s.run(one, x = ndarray<float, dyn>(1000)));
    if (i > 2) CHECK(device_delays().allocations == 0);
  }
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a step waits once, allocates nothing, and copies what crosses") {
  placeholder<float, 4, 8> x("x");
  placeholder<float> rate("rate"), scale("scale");
  auto w = on(device("/slow:0"), [] { return variable<float, 8, 3>("w", truncated_normal(0.5f)); });
  auto [loss, step] = on(device("/slow:0"), [&] {
    auto l = sum(square(matmul(x, w) * scale));
    auto [dw] = gradients(l, w);
    return std::pair(l, w.assign_sub(dw * rate));
  });
  session s;
  s.run(initialize_all());
  auto prepared = s.prepare(loss, step, feeds(x, rate, scale));
  ndarray<float, 4, 8> batch;
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 8; ++k) batch(i, k) = static_cast<float>(i + k) / 8;
  float last = 0;
  for (int i = 0; i < 2; ++i) last = prepared(batch, 0.001f, 1.f);
  for (int i = 0; i < 5; ++i) {
    device_delays().reset();
    const float l = prepared(batch, 0.001f, 1.f);
    CHECK(l < last);
    last = l;
    CHECK(device_delays().blocked == 0);
    CHECK(device_delays().allocations == 0);
    CHECK(device_delays().copies_in == 2);  // the batch, and both scalars in one block
    CHECK(device_delays().copies_out == 1);
  }
}

namespace {

/// A run that nobody waits for.
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
  device_delays().hold();
  CHECK_FALSE(a->start(feeds, context, one));
  CHECK_FALSE(b->start(feeds, context, other));
  CHECK_FALSE(one.over());
  CHECK_FALSE(other.over());
  device_delays().go_on();
  one.wait(), other.wait();
  CHECK(one.wakes == 1);  // once, at the end
  CHECK(a->failure() == nullptr);
  CHECK(a->peek(0).data<float>()[63] == 3.f);
  CHECK(b->peek(0).data<float>()[63] == 3.f);
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a step of training parks once, at its end, and allocates nothing") {
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
      device_delays().reset();
      device_delays().hold();
      unattended run(*frame);
      const step_context context{.step = 2};
      CHECK_FALSE(frame->start(feeds, context, run));
      // All has been started, and one thing is waited for: that it is done.
      const std::size_t launches = device_delays().launches;
      CHECK(launches > 4);
      CHECK(device_delays().copies_in == 2);
      CHECK(device_delays().copies_out == 1);
      device_delays().go_on();
      run.wait();
      CHECK(frame->failure() == nullptr);
      CHECK(run.wakes == 1);
      CHECK(device_delays().launches == launches);
      CHECK(device_delays().blocked == 0);
      if (i > 1) CHECK(device_delays().allocations == 0);
      CHECK(*frame->peek(0).data<float>() < last);
      last = *frame->peek(0).data<float>();
    }
  }
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "what depends on a device's work waits until that is done, not only started") {
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
      device_delays().hold();
      unattended once(*frame);
      const step_context context{.step = 1, .observer = &w};
      CHECK_FALSE(frame->start(feeds, context, once));
      CHECK_FALSE(w.begun);
      device_delays().go_on();
      once.wait();
      CHECK(w.begun);
      CHECK(frame->failure() == nullptr);
      CHECK(frame->peek(0).data<float>()[63] == 0.f);
      frame->release();
    }
  }
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "an error that only the device sees fails its own step alone") {
  placeholder<std::int32_t, 2> index("index");
  auto [picked, step, w] = on(device("/slow:0"), [&] {
    variable<float, 4, 2> v("v", ones());
    tensor<float, 2, 2> p = gather(v, index);
    name(p, "picked");
    return std::tuple(p, v.assign_sub(broadcast_to(sum(p), shape<4, 2>)), v);
  });
  session s;
  s.run(initialize_all());
  for (int i = 0; i < 3; ++i) {
    std::string e = testing::error_of([&] { s.run(step, picked, index = {0, 9}); });
    INFO(e);
    CHECK(e.starts_with("out_of_range: [gather] "));
    CHECK(e.find("node \"gather\" at test_asynchronous.cpp:") != std::string::npos);
    CHECK(e.find("/slow:0") != std::string::npos);
    CHECK(s.run(w)(3, 1) == 1.f);  // nothing was changed
    CHECK(s.run(picked, index = {0, 3})(1, 1) == 1.f);
  }
  s.run(step, index = {0, 3});
  CHECK(s.run(w)(0, 0) == -3.f);
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a step that fails on its device gives no variable another value") {
  device_delays().longest_us = 50;
  placeholder<std::int32_t, 2> index("index");
  auto scope = on(device("/slow:0"));
  variable<float, 2, 2> source("source", ones()), set("set", zeros()), held("held", zeros());
  variable<float, 2, 2> fresh("fresh", zeros());
  ndarray<float, dyn, 2> sevens(1);
  sevens(0, 0) = sevens(0, 1) = 7;
  variable<float, dyn, 2> sized("sized", sevens);
  tensor<float, 2, 2> picked = gather(source, index);  // fails for 9
  auto init = initialize_all();
  auto assign = set.assign(picked + 1.f);
  auto add = held.assign_add(picked);
  auto give = fresh.assign(picked * 5.f);
  auto resize = sized.assign(concat(axis<0>, picked, picked));
  auto is = [](const auto& a, float v) {
    return std::all_of(a.data(), a.data() + a.size(), [v](float x) { return x == v; });
  };
  session s;
  s.run(init);
  for (int i = 0; i < 3; ++i) {
    // What a fetch holds, an update writes into another buffer.
    const std::string e = testing::error_of([&] {
      s.run(held, set, sized, assign, add, give, resize, index = {0, 9});
    });
    CHECK(e.starts_with("out_of_range: [gather] "));
    CHECK(is(s.run(set), 0));
    CHECK(is(s.run(held), 0));
    CHECK(is(s.run(fresh), 0));
    CHECK(is(s.run(sized), 7));
  }
  s.run(assign, add, give, resize, index = {0, 1});
  CHECK(s.run(set)(1, 1) == 2.f);
  CHECK(s.run(held)(1, 1) == 1.f);
  CHECK(s.run(fresh)(1, 1) == 5.f);
  CHECK(s.run(sized).size() == 8);
}

TEST_CASE_FIXTURE(with_slow_devices, "the first value of a variable goes with a step that fails") {
  placeholder<std::int32_t, 2> index("index");
  auto scope = on(device("/slow:0"));
  variable<float, 2> v("v", ones());
  auto set = v.assign(gather(constant(ndarray<float, 2>{1, 2}), index));
  session s;
  CHECK(testing::error_of([&] { s.run(set, index = {0, 9}); }).starts_with("out_of_range"));
  CHECK(testing::error_of([&] { s.run(v); }).starts_with("failed_precondition"));
  s.run(set, index = {0, 1});
  CHECK(s.run(v)(1) == 2.f);
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a run that is cancelled leaves no work that uses its memory") {
  placeholder<float, dyn> x("x");
  any_tensor y = on(device("/slow:0"), [&] { return any_tensor(exp(x) + 1); });
  session s;
  s.run(y, x = ndarray<float, dyn>(8));
  for (int i = 0; i < 20; ++i) {
    cancel_source cancel;
    device_delays().hold();
    std::thread other([&] {
      // The feed's memory goes when the run has ended, not earlier.
      const std::string e = testing::error_of([&] {
        ndarray<float, dyn> batch(1000 + i);
        s.run(run_options{.cancel = cancel.flag()}, y, x = batch);
      });
      CHECK((e.empty() || e.starts_with("cancelled")));
    });
    cancel.cancel();
    device_delays().go_on();
    other.join();
  }
  CHECK(s.run(y, x = ndarray<float, dyn>(3)).elements() == 3);
}

TEST_CASE_FIXTURE(with_slow_devices, "a close with work in flight frees nothing early") {
  placeholder<float, dyn> x("x");
  any_tensor y = on(device("/slow:0"), [&] { return any_tensor(exp(x) + 1); });
  for (int i = 0; i < 20; ++i) {
    auto s = std::make_unique<session>();
    s->run(y, x = ndarray<float, dyn>(8));
    device_delays().hold();
    std::atomic<bool> begun = false;
    std::thread other([&] {
      ndarray<float, dyn> batch(1000 + i);
      begun = true;
      begun.notify_all();
      const std::string e = testing::error_of([&] { s->run(y, x = batch); });
      INFO(e);
      CHECK((e.empty() || e.find("closed") != std::string::npos));
    });
    begun.wait(false);
    s->close();
    device_delays().go_on();
    other.join();
    if (i % 2) s = nullptr;  // the devices' work may still go on
  }
}

TEST_CASE_FIXTURE(with_slow_devices,
                  "a step that fails on its device sends nothing to other tasks") {
  device_delays().longest_us = 100;
  local_cluster c{{"worker", 2}};
  placeholder<std::int32_t, 2> index("index");
  tensor<float, 2> picked;
  if (auto here = on(device("/job:worker/task:0/slow:0")))
    picked = gather(tensor<float, 4>(constant(ndarray<float, 4>{1, 2, 3, 4})), index);
  auto there = on(device("/job:worker/task:1/cpu:0"));
  variable<float, 2> w("w", zeros());
  auto add = w.assign_add(picked);
  session s(c.target("worker", 0));
  s.run(initialize_all());
  for (int i = 1; i <= 5; ++i) {
    CHECK(testing::error_of([&] {
            s.run(add, index = {0, 9});
          }).starts_with("out_of_range: [gather]"));
    s.run(add, index = {0, 3});
    CHECK(s.run(w) == ndarray<float, 2>{1.f * static_cast<float>(i), 4.f * static_cast<float>(i)});
  }
}

TEST_CASE_FIXTURE(with_slow_devices, "a task that is stopped waits for the work of its devices") {
  placeholder<float, dyn> x("x");
  const any_tensor y =
      on(device("/job:worker/task:1/slow:0"), [&] { return exp(any_tensor(x)) * 2 + 1; });
  for (int i = 0; i < 5; ++i) {
    local_cluster c{{"worker", 2}};
    session s(c.target("worker", 0));
    CHECK(s.run(y, x = ndarray<float, dyn>(8)).elements() == 8);
    device_delays().reset();
    device_delays().hold();
    std::string e;
    std::thread other(
        [&] { e = testing::error_of([&] { s.run(y, x = ndarray<float, dyn>(8)); }); });
    while (device_delays().copies_out == 0) std::this_thread::yield();
    std::thread stops([&] { c.kill("worker", 1); });
    other.join();
    CHECK(e.starts_with("unavailable: "));
    device_delays().go_on();
    stops.join();
  }
}

TEST_CASE_FIXTURE(with_slow_devices, "a variable assigned from a feed stays on the device") {
  placeholder<float, 100> x("x");
  auto w = on(device("/slow:0"), [] { return variable<float, 100>("w", zeros()); });
  auto set = w.assign(x);
  session s;
  ndarray<float, 100> v;
  for (int i = 0; i < 3; ++i) {
    v(5) = static_cast<float>(i);
    device_delays().reset();
    s.run(set, x = v);
    CHECK(device_delays().copies_in == 1);
    CHECK(device_delays().copies_out == 0);
    v(5) = -1;
    CHECK(s.run(w)(5) == static_cast<float>(i));
  }
}

TEST_CASE_FIXTURE(with_slow_devices, "values cross between slow devices of two tasks") {
  device_delays().longest_us = 100;
  local_cluster c{{"worker", 2}};
  placeholder<float, 4> x("x");
  tensor<float, 4> y, z;
  if (auto there = on(device("/job:worker/task:1/slow:0"))) y = x * 2.f;
  if (auto back = on(device("/job:worker/task:0/slow:1"))) z = y + 1.f;
  session s(c.target("worker", 0));
  for (int i = 0; i < 10; ++i) {
    const auto f = static_cast<float>(i);
    CHECK(s.run(z, x = {f, 2, 3, 4}) == ndarray<float, 4>{2 * f + 1, 5, 7, 9});
  }
}
