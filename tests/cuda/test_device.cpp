// SPDX-License-Identifier: Apache-2.0
// What CUDA's devices do with the runtime, against one that needs no GPU.
#include <cstring>
#include <deft/kernels/gpu/cuda/stream.hpp>
#include <deft/kernels/gpu/devices.hpp>
#include <future>
#include <thread>

#include "../execute/training_step.hpp"
#include "../session/sessions.hpp"
#include "environment.hpp"
#include "fake_runtime.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

using devices = std::vector<std::unique_ptr<device_runtime>>;

devices gpus() {
  fake::runtime() = {};
  return gpu::cuda::make_devices(parse_device("/job:localhost/replica:0/task:0"));
}
buffer numbers(std::size_t bytes) {
  buffer b = buffer::host(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    static_cast<unsigned char*>(b.data())[i] = static_cast<unsigned char>(i * 7 + i / 256);
  return b;
}
buffer on(device_runtime& d, std::size_t bytes) { return buffer(d.space().allocate(bytes)); }
bool equal(const buffer& a, const buffer& b, std::size_t bytes) {
  return std::memcmp(a.data(), b.data(), bytes) == 0;
}
/// Streams that stand still in a scope.
struct held {
  held() { fake::hold(); }
  ~held() { fake::go_on(); }
};

/// A kernel of the test's own.
struct any_kernel final : kernel {
  std::function<void(const gpu::fault_report&)> work;
  void prepare(std::span<const tensor_type>, std::span<const tensor_type>) override {}
  void run(const kernel_call& c) override {
    auto& s = *static_cast<gpu::cuda::stream*>(c.stream);
    fake::push(s.native(), [report = s.faults(), f = work] { f(report); });
  }
};
void launch(device_runtime& d, device_step& step, std::uint32_t item,
            std::function<void(const gpu::fault_report&)> work) {
  any_kernel k;
  k.work = std::move(work);
  d.launch({k, {}, 0, 0, item}, &step);
}

}  // namespace

TEST_CASE("GPUs are listed without a context on any of them") {
  auto all = gpus();
  REQUIRE(all.size() == 2);
  CHECK(to_string(all[1]->info()) ==
        "/job:localhost/replica:0/task:0/gpu:1 (Fake GPU, 85.8 GB, 0000:01:00.0)");
  CHECK(all[0]->info().kernels->has("add", dtype::float32));
  CHECK(all[0]->record() == nullptr);
  CHECK(fake::runtime().contexts.empty());
  on(*all[1], 1);
  CHECK(fake::runtime().contexts == std::set{1});
  all.clear();
  fake::runtime().gpus = 0;
  CHECK(gpu::cuda::make_devices(parse_device("/job:a/task:0")).empty());
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "a session that uses the processor alone makes no context on a GPU") {
  fake::runtime() = {};
  placeholder<float, dyn> x("x");
  variable<float> w = on(device("/cpu:0"), [] { return variable<float>("w", ones()); });
  auto on_processor = on(device("/cpu:0"), [&] { return sum(x * w); });
  session s;
  REQUIRE(s.devices().size() == 3);
  s.run(initialize_all());
  s.run(on_processor, x = ndarray<float, dyn>(3 << 20));
  CHECK(fake::runtime().contexts.empty());
  // Of two GPUs one is used.
  fake::runtime().kernel = [](const std::string&, void**, cudaStream_t) { return true; };
  fake::runtime().program = [](const fake::program_launch&) { return [] {}; };
  s.run(on(device("/gpu:1"), [&] { return exp(x); }), x = ndarray<float, dyn>(8));
  CHECK(fake::runtime().contexts == std::set{1});
}

TEST_CASE("launches that are captured run when their graph is started, as often as it is") {
  auto all = gpus();
  device_runtime& d = *all[0];
  std::vector<int> ran;
  any_kernel first, second;
  first.work = [&](const gpu::fault_report&) { ran.push_back(1); };
  second.work = [&](const gpu::fault_report& r) {
    ran.push_back(2);
    if (ran.size() == 6) r(gpu::fault_kind::divided);
  };
  const launch_request requests[] = {{first, {}, 0, 0, 4}, {second, {}, 0, 0, 5}};
  auto step = d.make_step();
  step->begin();
  const void* const place = step->block_address();
  {
    auto graph = d.capture(requests, step.get());
    REQUIRE(graph);
    CHECK(fake::runtime().graphs == 1);
    synchronize(d);
    CHECK(ran.empty());
    std::uint32_t item = 0;
    for (int i = 0; i < 3; ++i) {
      step->begin();
      CHECK(step->block_address() == place);
      d.launch(*graph, step.get());
      synchronize(d);
      CHECK((step->failure(item) != nullptr) == (i == 2));
    }
    CHECK(item == 5);
  }
  CHECK(ran == std::vector{1, 2, 1, 2, 1, 2});
  CHECK(fake::runtime().graphs == 0);
}

TEST_CASE("a step waits once, and no call of the runtime waits for a GPU in it") {
  gpus();
  testing::log_lines logged;
  const testing::environment none("DEFT_CUBLASLT", "/none");
  fake::runtime().kernel = [](const std::string&, void**, cudaStream_t) { return true; };
  fake::runtime().program = [](const fake::program_launch&) { return [] {}; };
  testing::training_step step("/gpu:0", true);
  fake::runtime().waits = 0;
  for (int i = 0; i < 5; ++i) {
    CAPTURE(i);
    testing::unattended run(step.frame());
    {
      held now;
      CHECK_FALSE(step.start(run));
    }
    run.wait();
    CHECK(step.frame().failure() == nullptr);
    CHECK(run.wakes == 1);
    CHECK(fake::runtime().waits == 0);
  }
  CHECK(fake::runtime().replays > 0);
}

TEST_CASE("a GPU that keeps no graphs says so, and goes on") {
  auto all = gpus();
  testing::log_lines logged;
  fake::runtime().captures = false;
  any_kernel k;
  int ran = 0;
  k.work = [&](const gpu::fault_report&) { ++ran; };
  auto step = all[0]->make_step();
  step->begin();
  const launch_request r{k, {}, 0, 0, 4};
  CHECK(all[0]->capture({&r, 1}, step.get()) == nullptr);
  const auto lines = logged.take();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("/gpu:0 launches 1 kernels one by one: ") != std::string::npos);
  all[0]->launch(r, step.get());
  synchronize(*all[0]);
  CHECK(ran == 1);
}

TEST_CASE("copies arrive, and hold what they read until they are done") {
  auto all = gpus();
  device_runtime& d = *all[0];
  for (std::size_t bytes : {1, 65'536, 65'537, 4 << 20, (4 << 20) + 5}) {
    INFO(bytes);
    const buffer from = numbers(bytes), to = buffer::host(bytes);
    {
      buffer there = on(d, bytes), second = on(d, bytes);
      event_ptr in, out;
      {
        held now;
        in = d.copy_in(there.data(), from.data(), bytes, from);
        CHECK(from.unique() == (bytes <= 4 << 20));
        CHECK(!in->done());
        d.wait(in);
        d.copy_within(second.data(), there.data(), bytes, nullptr);
        out = d.copy_out(to.data(), second.data(), bytes, second);
        CHECK(!second.unique());
        CHECK(!out->done());
      }
      out->synchronize();
      CHECK(in->done());
      CHECK(from.unique());
      CHECK(second.unique());
    }
    CHECK(equal(from, to, bytes));
  }
  CHECK(fake::runtime().in_pools == 0);
}

TEST_CASE("events call back from a thread of their own") {
  auto all = gpus();
  std::atomic<int> called{0};
  std::thread::id by;
  {
    held now;
    on(*all[0], 1);
    const event_ptr e = all[0]->record();
    e->when_done([&] {
      by = std::this_thread::get_id();
      ++called;
    });
    CHECK(!e->done());
    CHECK(called == 0);
  }
  while (called == 0) std::this_thread::yield();
  CHECK(by != std::this_thread::get_id());
  const event_ptr e = all[0]->record();
  e->synchronize();
  e->when_done([&] { ++called; });
  CHECK(called == 2);
}

TEST_CASE("an event that is never queried keeps what its copy reads") {
  auto all = gpus();
  device_runtime& d = *all[0];
  constexpr std::size_t bytes = 5 << 20;
  const buffer from = numbers(bytes);
  const buffer there = on(d, bytes);
  event_ptr last;
  {
    held now;
    d.copy_in(there.data(), from.data(), bytes, from);
    CHECK(!from.unique());
    last = d.copy_in(there.data(), from.data(), bytes, {});
  }
  last->synchronize();
  CHECK(!from.unique());
  d.copy_in(there.data(), from.data(), 1, from)->synchronize();
  CHECK(from.unique());
}

TEST_CASE("values go from GPU to GPU, after what makes them") {
  auto all = gpus();
  constexpr std::size_t bytes = 100'000;
  const buffer from = numbers(bytes), to = buffer::host(bytes);
  const buffer a = on(*all[0], bytes), b = on(*all[1], bytes);
  auto held_back = std::make_unique<held>();
  all[0]->wait(all[0]->copy_in(a.data(), from.data(), bytes, from));
  const event_ptr made = all[0]->record();
  event_ptr done;
  REQUIRE(all[1]->copy_between(b.data(), *all[0], a.data(), bytes, a, {&made, 1}, done));
  all[1]->wait(done);
  const auto out = all[1]->copy_out(to.data(), b.data(), bytes, b);
  held_back.reset();
  out->synchronize();
  CHECK(equal(from, to, bytes));
}

TEST_CASE("a GPU works on while values come to it from one that has not made them yet") {
  auto all = gpus();
  const buffer a = on(*all[0], 100), b = on(*all[1], 100);
  const auto step = all[0]->make_step();
  step->begin();
  std::promise<void> go;
  launch(*all[0], *step, 1, [f = go.get_future().share()](const auto&) { f.wait(); });
  const event_ptr made = all[0]->record();
  event_ptr copied;
  REQUIRE(all[1]->copy_between(b.data(), *all[0], a.data(), 100, a, {&made, 1}, copied));
  all[1]->record()->synchronize();  // ends although the copy cannot begin
  CHECK(!copied->done());
  go.set_value();
  copied->synchronize();
  CHECK(made->done());
}

TEST_CASE("after a fault of a run its updates are left out, and the next run is well") {
  auto all = gpus();
  device_runtime& d = *all[0];
  const auto step = d.make_step();
  const buffer from = numbers(100);
  const buffer a = on(d, 100), b = on(d, 100), to = buffer::host(100);
  std::memset(to.data(), 0, 100);
  d.wait(d.copy_in(a.data(), from.data(), 100, from));
  d.wait(d.copy_in(b.data(), to.data(), 100, to));
  std::uint32_t item = 0;
  for (bool fails : {true, false}) {
    step->begin();
    launch(d, *step, 7, [=](const gpu::fault_report& r) {
      if (fails) r(gpu::fault_kind::gathered, 12, 10), r(gpu::fault_kind::divided);
    });
    d.copy_within(b.data(), a.data(), 100, step.get());
    d.copy_out(to.data(), b.data(), 100, b)->synchronize();
    CHECK(equal(from, to, 100) == !fails);
    const auto e = step->failure(item);
    REQUIRE((e != nullptr) == fails);
    if (!fails) continue;
    CHECK(item == 7);
    CHECK(e->message() == "[gather] the index 12 is out of range for 10 rows");
  }
}

TEST_CASE("a sort has room enough, whatever it sorts") {
  for (std::int64_t n = 1; n < std::int64_t{1} << 32; n = 3 * n + 1) {
    INFO(n);
    std::uint32_t word = 0;
    gpu::cuda::stream s(nullptr, {}, nullptr);
    // Its kernels cannot run here: that it comes so far is the point.
    CHECK_THROWS_WITH_AS(s.sort_by_key(&word, &word, &word, &word, n, 32, &word),
                         doctest::Contains("failed to sort"), error);
  }
}

TEST_CASE(
    "large blocks of the host are pinned once they are copied again, until they are unmapped") {
  auto all = gpus();
  device_runtime &first = *all[0], &second = *all[1];
  constexpr std::size_t bytes = std::size_t{6} << 20;
  trim_host_memory();
  {
    const buffer host = numbers(bytes), there = on(first, bytes), other = on(second, bytes);
    first.copy_in(there.data(), host.data(), bytes, host)->synchronize();
    CHECK(fake::runtime().pinned.empty());
    second.copy_in(other.data(), host.data(), bytes, host)->synchronize();
    CHECK(fake::runtime().pinned == std::set{host.data()});
    // A part of it, and the other way.
    const auto part = static_cast<char*>(host.data()) + 4096;
    first.copy_out(part, there.data(), bytes - 4096, there)->synchronize();
    CHECK(std::memcmp(part, there.data(), bytes - 4096) == 0);
    // Memory of the caller is left alone, and small copies take another way.
    std::vector<char> own(bytes);
    for (int i = 0; i < 3; ++i) {
      first.copy_in(there.data(), own.data(), bytes, {})->synchronize();
      first.copy_in(there.data(), host.data(), 4096, host)->synchronize();
    }
    CHECK(fake::runtime().pinnings == 1);
  }
  trim_host_memory();
  CHECK(fake::runtime().pinned.empty());
}

TEST_CASE("a kernel that was compiled for other GPUs is an error that names both") {
  auto all = gpus();
  device_runtime& d = *all[1];
  const auto step = d.make_step();
  step->begin();
  const buffer a = on(d, 64), b = on(d, 64);
  fake::runtime().starting = cudaErrorNoKernelImageForDevice;
  std::string says;
  try {
    d.copy_within(a.data(), b.data(), 64, step.get());
  } catch (const error& e) {
    CHECK(e.code() == errc::failed_precondition);
    says = e.message();
  }
  CHECK(says.starts_with("the kernel was compiled for compute capability "));
  CHECK(says.find(", and the GPU has 9.0; add 90 to the CUDA_ARCHITECTURES of ") != says.npos);
  // The device stays usable.
  fake::runtime().starting = cudaSuccess;
  d.copy_within(a.data(), b.data(), 64, step.get());
  synchronize(d);
}

TEST_CASE("memory that is not there is an error that says so") {
  auto all = gpus();
  fake::runtime().free = 1000;
  CHECK_THROWS_WITH_AS(
      on(*all[1], 1025),
      doctest::Contains("gpu:1 cannot allocate 1280 bytes: tensors have 0 of 1000 "), error);
  fake::runtime().free = 1 << 20;
  const auto limited = gpu::cuda::make_devices(parse_device("/job:a/task:0"), false, 2000);
  const buffer first = on(*limited[0], 1025);
  CHECK_THROWS_WITH_AS(on(*limited[0], 1025),
                       doctest::Contains("cannot allocate 1280 bytes: tensors have 1280 of 2000 "),
                       error);
}

TEST_CASE("every step on a GPU that has stopped fails, and names the node that was running") {
  auto all = gpus();
  testing::log_lines logged;
  device_runtime& d = *all[0];
  const auto step = d.make_step(), other = d.make_step();
  step->begin();
  other->begin();
  const buffer there = on(d, 8), host = buffer::host(8);
  launch(d, *step, 1, [](auto&) {});
  d.record()->synchronize();
  std::atomic<bool> called{false};
  {
    held now;
    launch(d, *step, 2, [](auto&) { fake::stop(cudaErrorIllegalAddress); });
    d.record()->when_done([&] { called = true; });
  }
  while (!called) std::this_thread::yield();
  std::uint32_t item = 0;
  const auto e = step->failure(item);
  REQUIRE(e);
  CHECK(e->code() == errc::internal);
  CHECK(item == 2);
  CHECK(e->message() ==
        "the GPU has stopped for good in this node: something happened "
        "(cudaErrorIllegalAddress); start the task again");
  const std::string later =
      "the GPU has stopped for good before this step: something happened "
      "(cudaErrorIllegalAddress); start the task again";
  CHECK(other->failure(item)->message() == later);
  CHECK(item == UINT32_MAX);
  // Nothing throws in the middle, and nothing is waited for.
  other->begin();
  launch(d, *other, 1, [](auto&) {});
  CHECK(d.copy_out(host.data(), there.data(), 8, there) == nullptr);
  CHECK(d.record() == nullptr);
  CHECK_THROWS_WITH_AS(on(d, 1), later.c_str(), error);
  CHECK(logged.take() ==
        std::vector<std::string>{"GPU 0 has stopped for good: something happened "
                                 "(cudaErrorIllegalAddress); start the task again"});
}

TEST_CASE("every error that CUDA does not recover from stops the GPU, the first time it is seen") {
  for (const int e : {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 999}) {
    INFO(e);
    auto all = gpus();
    testing::log_lines logged;
    const buffer there = on(*all[0], 8);
    const auto step = all[0]->make_step();
    step->begin();
    launch(*all[0], *step, 3, [](auto&) {});
    // An allocation is what comes next, and no event has told of the launch.
    fake::stop(static_cast<cudaError_t>(e));
    CHECK_THROWS_WITH_AS(on(*all[0], 8), doctest::Contains("has stopped for good before"), error);
    std::uint32_t item = 0;
    const auto why = step->failure(item);
    REQUIRE(why);
    CHECK(item == 3);
    CHECK(why->message().starts_with("the GPU has stopped for good in this node: "));
    CHECK(logged.take().size() == 1);
  }
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "a step on a GPU that stops names the node that ran, not one that allocates") {
  gpus();
  testing::log_lines logged;
  static std::atomic<int> launches;
  launches = 0;
  fake::runtime().kernel = [](const std::string&, void**, cudaStream_t) { return ++launches > 0; };
  session s;
  placeholder<float, dyn> x("x");
  placeholder<std::int32_t, dyn> at("at");
  const tensor<float, dyn> first = gather(x, at);
  const auto line = here().line;
  const tensor<float, dyn> second = gather(first, at);
  auto run = [&](std::int64_t n) {
    const ndarray<float, dyn> values(n);
    const ndarray<std::int32_t, dyn> indices(n);
    return testing::outcome_of([&] { s.run(second, x = values, at = indices); });
  };
  CHECK(to_string(run(8)) == "no error");
  CHECK(launches == 2);
  // The second node needs more memory than there is of the first step, after the first has run.
  fake::runtime().allocating = [] {
    if (launches == 3) fake::stop(cudaErrorIllegalAddress);
  };
  const auto why = run(1 << 20);
  CHECK(launches == 3);
  CHECK(why.line == line - 1);
  CHECK(why.code == errc::internal);
  CHECK(why.says("the GPU has stopped for good in this node: "));
  const std::string running = str(", while node \"", why.node, "\" ran: something happened");
  CHECK(run(1 << 20).says("the GPU has stopped for good before this step" + running));
  const auto lines = logged.take();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("GPU 0 has stopped for good" + running));
}
