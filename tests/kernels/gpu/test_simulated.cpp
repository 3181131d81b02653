// SPDX-License-Identifier: Apache-2.0
// Simulated GPUs as devices: what they have, what they refuse, and how their work is ordered.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <deft/kernels/gpu/simulated/queue.hpp>
#include <deft/kernels/gpu/simulated/stream.hpp>
#include <deft/op/catalog.hpp>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "environment.hpp"
#include "execute/classifier.hpp"
#include "execute/training_step.hpp"
#include "on_gpu.hpp"
#include "own_operations.hpp"
#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using gpu::simulated::simulated_gpus;
using testing::environment;
using testing::outcome_of;
using testing::own_graph;

namespace {

struct with_gpus : own_graph {
  ~with_gpus() {
    simulated_gpus().go_on();
    simulated_gpus().longest_us = 0;
    simulated_gpus().before_kernel = nullptr;
  }
};

std::vector<float> train(const char* first, const char* second) {
  return testing::losses_on(first, second, {.simulated_gpus = 2});
}

}  // namespace

TEST_CASE("simulated GPUs have every kernel that the processor has") {
  const auto gpus = gpu::simulated::make_devices(parse_device("/job:localhost/task:0"), 1);
  const auto processor = announce(cpu_kernel_tables());
  for (const op_def* o : catalog_ops()) {
    CAPTURE(o->name);
    // What works with files and waits for variables runs on the processor.
    if (find_cpu_kernel(o->name) && find_cpu_kernel(o->name)->make_value) continue;
    // A plan makes it only where there is one: GPUs have the expression, and then its reduction.
    if (o == &record_of<op::fused_fold>) continue;
    for (const dtype t : every_plain_dtype)
      if (processor->has(o->name, t)) CHECK(gpus[0]->info().kernels->has(o->name, t));
  }
}

TEST_CASE_FIXTURE(with_gpus, "a model trains on simulated GPUs as on the processor") {
  const auto expected = train("/cpu:0", "/cpu:0");
  const auto alone = train("/gpu:0", "/gpu:0");
  REQUIRE(expected.size() == alone.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(alone[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  for (int longest : {0, 50, 200}) {
    CAPTURE(longest);
    simulated_gpus().longest_us = longest;
    CHECK(train("/gpu:0", "/gpu:0") == alone);
    CHECK(train("/gpu:0", "/gpu:1") == alone);
    CHECK(train("/gpu:1", "/cpu:0").size() == alone.size());
  }
}

TEST_CASE_FIXTURE(with_gpus, "an operation of the program's own has the processor's bits") {
  placeholder<float, dyn> x("x");
  session s({.simulated_gpus = 1});
  const ndarray<float, dyn> values{-2.f, 0.3f, 0, 1e30f, -7.7f};
  auto run = [&](const char* where) {
    return s.run(on(device(where), [&] { return any_tensor(testing::make_leak(x, x, x)); }),
                 x = values);
  };
  CHECK(testing::identical(run("/gpu:0"), run("/cpu:0")));
}

TEST_CASE_FIXTURE(with_gpus, "extents that a GPU computes shape what it computes next") {
  placeholder<float, dyn, 3> x("x");
  session s({.simulated_gpus = 1});
  const auto [ones_of, last, numbers, drawn] = on(device("/gpu:0"), [&] {
    const auto n = size_of(x * 2, axis<0>);
    return std::tuple{tensor<float, dyn, 2>(ones(shape<dyn, 2>, {n}) * 3),
                      tensor<float, 2, 3>(slice(x, {n - 2, 0}, shape<2, 3>)), arange<float>(n),
                      random_normal(shape<dyn>, {n}, 0, 1, {.seed = 1})};
  });
  const auto on_processor = on(device("/cpu:0"), [&] {
    return random_normal(shape<dyn>, {size_of(x, axis<0>)}, 0, 1, {.seed = 1});
  });
  for (std::int64_t rows : {3, 5, 2}) {
    CAPTURE(rows);
    any_array values(dtype::float32, {rows, 3});
    for (std::int64_t i = 0; i < 3 * rows; ++i)
      values.mutable_data<float>()[i] = static_cast<float>(i);
    const auto [o, part, k, d, e] = s.run(ones_of, last, numbers, drawn, on_processor,
                                          x = ndarray<float, dyn, 3>(std::move(values)));
    REQUIRE(o.extents() == dims{rows, 2});
    CHECK(o(rows - 1, 1) == 3);
    CHECK(part(1, 2) == static_cast<float>(3 * rows - 1));
    REQUIRE(k.size() == rows);
    CHECK(k(rows - 1) == static_cast<float>(rows - 1));
    for (std::int64_t i = 0; i < rows; ++i) CHECK(d(i) == doctest::Approx(e(i)).epsilon(1e-6));
  }
}

TEST_CASE_FIXTURE(with_gpus, "a training step on a GPU allocates nothing once it has run") {
  placeholder<float, 64, 12> x("x");
  variable<float, 12, 5> w =
      on(device("/gpu:0"), [] { return variable<float, 12, 5>("w", ones()); });
  auto loss = mean(square(matmul(x, w)));
  auto step = adagrad(0.1f).minimize(loss);
  session s({.simulated_gpus = 1});
  s.run(initialize_all());
  const ndarray<float, 64, 12> batch;
  auto run = s.prepare(step, loss, feeds(x));
  for (int i = 0; i < 3; ++i) run(batch);
  simulated_gpus().reset_counts();
  for (int i = 0; i < 10; ++i) run(batch);
  CHECK(simulated_gpus().allocations == 0);
  CHECK(simulated_gpus().blocked == 0);
  CHECK(simulated_gpus().copies_in == 10);
  CHECK(simulated_gpus().copies_out == 10);
}

TEST_CASE_FIXTURE(with_gpus, "a training step on a GPU waits once, for its work and its copies") {
  testing::training_step step("/gpu:0", true, {{"simulated_gpus", 1}});
  float last = 100;
  for (int i = 0; i < 5; ++i) {
    simulated_gpus().reset_counts();
    simulated_gpus().hold();
    testing::unattended run(step.frame());
    CHECK_FALSE(step.start(run));
    // All of it is queued.
    const std::size_t launches = simulated_gpus().launches;
    CHECK(launches > 4);
    simulated_gpus().go_on();
    run.wait();
    CHECK(step.frame().failure() == nullptr);
    CHECK(run.wakes == 1);
    CHECK(simulated_gpus().waits == 4);  // two feeds, the loss, and the GPU's queue
    CHECK(simulated_gpus().blocked == 0);
    CHECK(simulated_gpus().launches == launches);
    CHECK(step.loss() < last);
    last = step.loss();
  }
  CHECK(simulated_gpus().replays > 0);
}

TEST_CASE_FIXTURE(with_gpus, "a thread that waits for a GPU for long asks to be woken") {
  const operation drawn = on(device("/gpu:0"), [] { return group(random_uniform(shape<100>)); });
  session s({.simulated_gpus = 1});
  auto run = s.prepare(drawn);
  run();
  simulated_gpus().reset_counts();
  simulated_gpus().hold();
  std::thread runs([&] { run(); });
  // A thread that only looked again and again would never ask.
  while (simulated_gpus().waits == 0) std::this_thread::yield();
  simulated_gpus().go_on();
  runs.join();
  CHECK(simulated_gpus().blocked == 0);
}

TEST_CASE_FIXTURE(with_gpus, "towers on several GPUs run at the same time") {
  constexpr int towers = 4;
  std::vector<any_tensor> sums;
  for (int i = 0; i < towers; ++i) {
    auto scope = on(device(str("/gpu:", i)));
    sums.push_back(sum(random_uniform(shape<100, 100>) + 1.f));
  }
  operation all = group(sums[0], sums[1], sums[2], sums[3]);
  session s({.simulated_gpus = towers});
  auto run = s.prepare(all);
  run();
  simulated_gpus().reset_counts();
  run();
  const std::size_t launches = simulated_gpus().launches;
  CHECK(launches >= 2 * towers);
  // No GPU makes progress, and yet all work is queued on each of them.
  simulated_gpus().reset_counts();
  simulated_gpus().hold();
  std::thread runs([&] { run(); });
  while (simulated_gpus().launches < launches) std::this_thread::yield();
  simulated_gpus().go_on();
  runs.join();
  CHECK(simulated_gpus().launches == launches);
}

namespace {

/// The first kernel of each stream waits for those of the others.
struct meeting {
  std::mutex guard;
  std::condition_variable changed;
  std::set<std::thread::id> streams;
  std::size_t expected = 0;

  void attend() {
    std::unique_lock lock(guard);
    streams.insert(std::this_thread::get_id());
    changed.notify_all();
    changed.wait(lock, [&] { return streams.size() >= expected; });
  }
};
meeting meets;

}  // namespace

TEST_CASE_FIXTURE(with_gpus, "kernels of all towers are running at once") {
  constexpr int towers = 4;
  std::vector<any_tensor> sums;
  for (int i = 0; i < towers; ++i) {
    auto there = on(device(str("/gpu:", i)));
    sums.push_back(sum(random_uniform(shape<100, 100>) + 1.f));
  }
  for (bool joined : {false, true}) {
    // Whether they have nothing to do with each other, or one result.
    CAPTURE(joined);
    const operation all =
        joined ? group(all_reduce(sums)[3]) : group(sums[0], sums[1], sums[2], sums[3]);
    session s({.simulated_gpus = towers});
    auto run = s.prepare(all);
    run();
    meets.streams.clear();
    meets.expected = towers;
    simulated_gpus().before_kernel = [] { meets.attend(); };
    run();  // ends only if all streams come
    CHECK(meets.streams.size() == towers);
    meets.streams.clear();
    run();  // likewise, from what was captured
    simulated_gpus().before_kernel = nullptr;
    CHECK(meets.streams.size() == towers);
  }
}

TEST_CASE_FIXTURE(with_gpus, "errors detected on a GPU name node, line and device") {
  placeholder<std::int64_t, dyn> at("at");
  auto scope = on(device("/gpu:1"));
  variable<float, 4, 2> table("table", ones());
  auto rows = gather(table, at);
  const unsigned line = __LINE__ - 1;
  operation changed = table.assign_add(gather(table, at) * 0.f + 1.f);
  session s({.simulated_gpus = 2});
  s.run(initialize_all());
  auto o = outcome_of([&] { s.run(rows, at = {1, 2, 7}); });
  CHECK(o.code == errc::out_of_range);
  CHECK(o.says("[gather] the index 7 is out of range for 4 rows"));
  CHECK(o.node == "gather");
  CHECK(o.line == line);
  CHECK(o.device == "/job:localhost/replica:0/task:0/gpu:1");
  // A later update changes nothing, and the device stays usable.
  CHECK(outcome_of([&] { s.run(changed, at = {0, 1, -1, 2}); }).code == errc::out_of_range);
  for (float v : s.run(table)) CHECK(v == 1);
  s.run(changed, at = {0, 1, 2, 3});
  for (float v : s.run(table)) CHECK(v == 2);
}

TEST_CASE("a GPU refuses addresses of the host and of another GPU") {
  const auto gpus = gpu::simulated::make_devices(parse_device("/job:localhost/task:0"), 2);
  const buffer mine(gpus[0]->space().allocate(100)), other(gpus[1]->space().allocate(100));
  const buffer host = buffer::host(100);
  auto refused = [&](void* p) {
    return outcome_of([&] { gpus[0]->copy_within(mine.data(), p, 100, nullptr); }).message;
  };
  CHECK(refused(mine.data()).empty());
  CHECK(refused(other.data()).find("an address of another GPU") != std::string::npos);
  CHECK(refused(host.data()).find("an address of the host") != std::string::npos);
}

TEST_CASE("the host that follows an address of a GPU faults at once") {
  const auto gpus = gpu::simulated::make_devices(parse_device("/job:localhost/task:0"), 2);
  for (const auto& g : gpus) {
    const buffer there(g->space().allocate(100));
    for (const bool writes : {false, true}) {
      CAPTURE(writes);
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);
        auto* const at = static_cast<volatile char*>(there.data());
        if (writes) at[99] = 1;
        _exit(writes ? 0 : at[0] * 0);
      }
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child);
      REQUIRE(WIFSIGNALED(status));
      CHECK(WTERMSIG(status) == SIGSEGV);
    }
  }
}

#ifdef __SANITIZE_ADDRESS__
namespace {

/// A functor on elements of an array, and what is one element too far, of so many.
struct one_too_far final : kernel {
  std::int64_t count, bad;
  bool writes;
  one_too_far(std::int64_t n, std::int64_t i, bool w) : count(n), bad(i), writes(w) {}
  void prepare(std::span<const tensor_type>, std::span<const tensor_type>) override {}
  void run(const kernel_call& c) override {
    auto& s = *static_cast<gpu::simulated::stream*>(c.stream);
    s.launch(count, [x = s.out<float>(c.out[0]), at = bad, w = writes](std::int64_t i) {
      volatile float* const p = x + (i == 0 ? at : i);
      if (w) *p = 1;
      [[maybe_unused]] const float read = *p;
    });
  }
};

/// What a process says that runs such a kernel on a GPU of its own; empty if it is sound.
std::string said_of(std::int64_t count, std::int64_t bad, bool writes) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    const auto gpus = gpu::simulated::make_devices(parse_device("/job:localhost/task:0"), 1);
    const buffer x(gpus[0]->space().allocate(static_cast<std::size_t>(count) * sizeof(float)));
    one_too_far k(count, bad, writes);
    void* const to[] = {x.data()};
    const auto step = gpus[0]->make_step();
    step->begin();
    gpus[0]->launch({k, {nullptr, to, nullptr}, 0, 1}, step.get());
    gpus[0]->record()->synchronize();
    _exit(0);
  }
  close(ends[1]);
  std::string said(1 << 16, '\0');
  std::size_t size = 0;
  while (const auto n = read(ends[0], said.data() + size, said.size() - size)) {
    if (n < 0 || size == said.size()) break;
    size += static_cast<std::size_t>(n);
  }
  said.resize(size);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((status == 0) == said.empty());
  return said;
}

}  // namespace

TEST_CASE("AddressSanitizer reports a functor that goes one element too far") {
  for (std::int64_t count : {1, 3, 100, 5000, 1'000'000})
    for (bool writes : {false, true}) {
      INFO(count, " elements", writes ? ", written" : "");
      CHECK(said_of(count, count - 1, writes) == "");
      for (std::int64_t bad : {count, std::int64_t{-1}})
        CHECK(said_of(count, bad, writes).find("AddressSanitizer: use-after-poison") !=
              std::string::npos);
    }
}
#endif

namespace {

/// Runs until the test says so.
struct long_kernel final : kernel {
  std::shared_future<void> over;
  explicit long_kernel(std::shared_future<void> f) : over(std::move(f)) {}
  void prepare(std::span<const tensor_type>, std::span<const tensor_type>) override {}
  void run(const kernel_call& c) override {
    static_cast<gpu::simulated::stream*>(c.stream)->call([f = over] { f.wait(); });
  }
};

}  // namespace

TEST_CASE("a GPU works on while values come to it from one that has not made them yet") {
  const auto gpus = gpu::simulated::make_devices(parse_device("/job:localhost/task:0"), 2);
  const buffer from(gpus[1]->space().allocate(8)), to(gpus[0]->space().allocate(8));
  std::promise<void> go;
  long_kernel k(go.get_future().share());
  const auto step = gpus[1]->make_step();
  step->begin();
  gpus[1]->launch({k, kernel_call{}}, step.get());
  const event_ptr made = gpus[1]->record();
  event_ptr copied;
  REQUIRE(gpus[0]->copy_between(to.data(), *gpus[1], from.data(), 8, from, {&made, 1}, copied));
  gpus[0]->record()->synchronize();  // ends although the copy cannot begin
  CHECK(!copied->done());
  go.set_value();
  copied->synchronize();
  CHECK(made->done());
}

namespace {

/// Does something while it queues its run.
struct any_kernel final : kernel {
  std::function<void()> what;
  explicit any_kernel(std::function<void()> f) : what(std::move(f)) {}
  void prepare(std::span<const tensor_type>, std::span<const tensor_type>) override {}
  void run(const kernel_call&) override { what(); }
};

}  // namespace

TEST_CASE("a kernel neither allocates nor waits while it queues its run") {
  const auto gpus = gpu::simulated::make_devices(parse_device("/job:localhost/task:0"), 1);
  const auto step = gpus[0]->make_step();
  step->begin();
  auto says = [&](std::function<void()> what) {
    any_kernel k(std::move(what));
    const kernel_call call{};
    return outcome_of([&] { gpus[0]->launch({k, call}, step.get()); }).message;
  };
  CHECK(says([&] {
          buffer(gpus[0]->space().allocate(10));
        }).find("a kernel allocates while it queues its run") != std::string::npos);
  const event_ptr e = gpus[0]->record();
  e->synchronize();
  CHECK(says([&] {
          e->synchronize();
        }).find("a kernel waits for the device while it queues its run") != std::string::npos);
}

namespace {

std::size_t gpus_of(session&& s) {
  const auto all = s.devices();
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [](const auto& d) { return d.name->type == "gpu"; }));
}

}  // namespace

TEST_CASE("DEFT_SIMULATED_GPUS is the default where a session sets no number") {
  const environment set("DEFT_SIMULATED_GPUS", "3");
  CHECK(gpus_of(session()) == 3);
  CHECK(gpus_of(session({.simulated_gpus = 1})) == 1);
  CHECK(gpus_of(session({.simulated_gpus = 0})) == 0);
  const environment zero("DEFT_SIMULATED_GPUS", "0");
  CHECK(gpus_of(session()) == 0);
}

TEST_CASE("an invalid number of simulated GPUs is refused") {
  for (int count : {-1, 65}) {
    auto o = outcome_of([&] { session({.simulated_gpus = count}); });
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.message == str("simulated_gpus is ", count, "; expected a number from 0 to 64"));
  }
  for (const char* given : {"x", "-1", "65", "2 ", "99999999999"}) {
    const environment set("DEFT_SIMULATED_GPUS", given);
    auto o = outcome_of([] { session(); });
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.message ==
          str("DEFT_SIMULATED_GPUS is \"", given, "\"; expected a number from 0 to 64"));
  }
}

TEST_CASE("the log has the GPUs of a task: kind, memory and name") {
  testing::log_lines lines(logging::level::info);
  const session s({.simulated_gpus = 2, .gpu_memory_limit = 3e9});
  const auto said = lines.take();
  CAPTURE(join(said, "\n"));
  for (const int i : {0, 1})
    CHECK(std::ranges::any_of(said, [&](const std::string& line) {
      return line.find(str("uses /job:localhost/replica:0/task:0/gpu:", i, " (simulated, 3 GB)")) !=
             line.npos;
    }));
}

TEST_CASE_FIXTURE(with_gpus,
                  "a GPU allocates no more than its limit, and reports what uses the memory") {
  auto scope = on(device("/gpu:0"));
  variable<float, 50, 100> small("small", zeros());
  variable<float, 100, 100> large("large", zeros());
  auto product = matmul(random_uniform(shape<10'000, 100>), large);
  session s({.simulated_gpus = 1, .gpu_memory_limit = 1e6});
  s.run(initialize_all());
  for (int again = 0; again < 2; ++again) {
    auto o = outcome_of([&] { s.run(sum(product)); });
    CHECK(o.code == errc::resource_exhausted);
    CAPTURE(o.message);
    CHECK(o.says("/job:localhost/replica:0/task:0/gpu:0 cannot allocate "));
    CHECK(
        o.says(" of 1000000 there; the variables there: large float(100,100) of 40000 bytes, "
               "small float(50,100) of 20000 bytes; the values of this step there, not all at a "
               "time: "));
    CHECK(o.says("matmul float(10000,100) of 4000000 bytes"));
    // Runs that fit in memory still work.
    CHECK(s.run(sum(matmul(small, large))) == 0);
  }
  auto refused = outcome_of([] { session({.simulated_gpus = 1, .gpu_memory_limit = 0.}); });
  CHECK(refused.code == errc::invalid_argument);
  CHECK(
      refused.says("gpu_memory_limit is 0; expected a part of a GPU's memory, above 0 and up to "
                   "1, or bytes"));
}
