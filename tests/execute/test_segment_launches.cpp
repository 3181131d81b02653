// SPDX-License-Identifier: Apache-2.0
// When the launches of a segment are started one by one, captured, or started as a graph: on a
// device whose graphs hold the addresses that they were captured with.
#include <cstring>
#include <deft/execute/segments.hpp>
#include <thread>

#include "executing.hpp"
#include "null_device.hpp"

using namespace deft;
using namespace deft::ext;
using testing::first_step;
using testing::own_graph;
using testing::parts_for;
using testing::task_name;

namespace {

class graph_device final : public testing::null_device {
 public:
  graph_device() : null_device(task_name(), 0) {}

  bool asynchronous() const override { return true; }
  std::uint64_t code_version() const override { return version; }
  void launch(const launch_request& r, device_step* step) override {
    ++launches;
    if (on_launch) on_launch();
    null_device::launch(r, step);
  }
  std::unique_ptr<launch_graph> capture(std::span<const launch_request> all,
                                        device_step*) override {
    ++captures;
    return can_capture ? std::make_unique<kept_launches>(all) : nullptr;
  }
  void launch(launch_graph& g, device_step* step) override {
    ++replays;
    for (const kept_launch& k : static_cast<kept_launches&>(g).all) {
      launch_request r = k.request;
      r.call.in = k.in.data(), r.call.out = k.out.data();
      null_device::launch(r, step);
    }
  }
  void reset() { launches = captures = replays = 0; }

  int launches = 0, captures = 0, replays = 0;
  bool can_capture = true;
  std::uint64_t version = 1;
  std::function<void()> on_launch;

 private:
  struct kept_launch {
    launch_request request;
    std::vector<const void*> in;
    std::vector<void*> out;
  };
  struct kept_launches final : launch_graph {
    explicit kept_launches(std::span<const launch_request> requests) {
      for (const launch_request& r : requests)
        all.push_back({r, std::vector(r.call.in, r.call.in + r.ins),
                       std::vector(r.call.out, r.call.out + r.outs)});
    }
    std::vector<kept_launch> all;
  };
};

/// Records its arguments.
class noting_kernel final : public kernel {
 public:
  void prepare(std::span<const tensor_type>, std::span<const tensor_type>) override {}
  void run(const kernel_call& c) override {
    if (c.in[0] == fails_on) fail(errc::internal, "the launch failed");
    noted.push_back({c.in[0], c.out[0], c.scratch, c.draw_word});
  }

  std::vector<std::array<const void*, 4>> noted;
  const void* fails_on = nullptr;
};

class placed_step final : public device_step {
 public:
  void begin() override {}
  std::shared_ptr<const error> failure(std::uint32_t&) const override { return nullptr; }
  const void* block_address() const override { return where; }

  const void* where = nullptr;
};

/// A segment of three launches, run again and again.
struct three_launches {
  graph_device device;
  placed_step step;
  noting_kernel kernel;
  exec::segment_info info{.first = 5, .end = 8, .launches = 3, .addresses = 6, .variables = {}};
  exec::segment_launches launches{info};
  std::array<int, 8> memory{};
  const void *in = &memory[0], *draw_word = nullptr;
  void* out = &memory[1];
  std::size_t scratch = 0;
  int interrupted_after = -1;

  void add_all() {
    for (std::uint32_t k = 0; k < 3; ++k) {
      kernel_call call{&in, &out, &first_step};
      if (scratch) call.scratch = launches.scratch(scratch);
      call.draw_word = draw_word;
      launches.add({kernel, call, 1, 1, info.first + k});
      if (interrupted_after == static_cast<int>(k)) launches.interrupt();
    }
  }
  struct started {
    int launches, captures, replays;
    bool operator==(const started&) const = default;
    friend std::ostream& operator<<(std::ostream& o, const started& s) {
      return o << s.launches << " launches, " << s.captures << " captures, " << s.replays
               << " replays";
    }
  };
  started run(bool prepared_anew = false) {
    device.reset();
    kernel.noted.clear();
    launches.begin(device, &step);
    add_all();
    launches.start(prepared_anew);
    launches.end();
    // However they were started, the kernels ran with the current arguments.
    REQUIRE(kernel.noted.size() == 3);
    for (const auto& n : kernel.noted) {
      REQUIRE(n[0] == in);
      REQUIRE(n[1] == out);
      REQUIRE((n[2] != nullptr) == (scratch != 0));
      REQUIRE(n[3] == draw_word);
    }
    return {device.launches, device.captures, device.replays};
  }
};
using started = three_launches::started;
constexpr started one_by_one{3, 0, 0}, captured{0, 1, 1}, at_once{0, 0, 1};

}  // namespace

TEST_CASE_FIXTURE(three_launches, "the second of two equal runs is captured") {
  CHECK(run() == one_by_one);
  CHECK(run() == captured);
  CHECK(run() == at_once);
  CHECK(run() == at_once);
}

TEST_CASE_FIXTURE(three_launches, "a run that is cancelled ends between two launches") {
  std::stop_source source;
  const std::stop_token token = source.get_token();
  device.on_launch = [&] {
    if (device.launches == 2) source.request_stop();
  };
  launches.begin(device, &step, token);
  add_all();
  CHECK_THROWS_WITH_AS(launches.start(false), doctest::Contains("the step was cancelled"), error);
  CHECK(launches.last() == 6);
  launches.end();
  CHECK(device.launches == 2);
  device.on_launch = nullptr;
  CHECK(run() == captured);  // as the second of two equal ones
  CHECK(run() == at_once);
}

TEST_CASE_FIXTURE(three_launches, "runs with different arguments are different") {
  run(), run();
  REQUIRE(run() == at_once);
  auto differs = [&](auto& what, auto other) {
    const auto before = std::exchange(what, other);
    CHECK(run() == one_by_one);
    CHECK(run() == captured);
    CHECK(run() == at_once);
    what = before;
    CHECK(run() == at_once);
  };
  SUBCASE("an operand") { differs(in, &memory[2]); }
  SUBCASE("a result") { differs(out, &memory[2]); }
  SUBCASE("the counter of random operations") { differs(draw_word, &memory[2]); }
  SUBCASE("where errors are recorded") { differs(step.where, &memory[2]); }
  SUBCASE("the code of a kernel") { differs(device.version, 2); }
}

TEST_CASE_FIXTURE(three_launches, "kernels that are prepared again are launched again") {
  run(), run();
  CHECK(run(true) == one_by_one);
  CHECK(run() == captured);
}

TEST_CASE_FIXTURE(three_launches, "only the four most recently used sets of addresses are kept") {
  auto run_with = [&](std::size_t k) { return in = &memory[k], run(); };
  for (std::size_t k : {0, 2, 3, 4}) {
    CHECK(run_with(k) == one_by_one);
    CHECK(run_with(k) == captured);
  }
  for (std::size_t k : {0, 2, 3, 4}) CHECK(run_with(k) == at_once);
  CHECK(run_with(0) == at_once);  // 2 is the oldest now
  CHECK(run_with(5) == one_by_one);
  for (std::size_t k : {0, 3, 4}) CHECK(run_with(k) == at_once);
  CHECK(run_with(5) == captured);
  CHECK(run_with(2) == one_by_one);
}

TEST_CASE_FIXTURE(three_launches, "launches before an interruption are started immediately") {
  interrupted_after = 1;
  launches.begin(device, &step);
  add_all();
  CHECK(kernel.noted.size() == 2);
  launches.start(false);
  launches.end();
  CHECK(kernel.noted.size() == 3);
  for (int i = 0; i < 3; ++i) CHECK(run() == one_by_one);
  interrupted_after = -1;
  CHECK(run() == one_by_one);
  CHECK(run() == captured);
  interrupted_after = 1;
  CHECK(run() == one_by_one);
}

TEST_CASE_FIXTURE(three_launches, "a run whose scratch memory grew is not captured") {
  scratch = 100;
  CHECK(run() == one_by_one);  // there was no scratch memory
  CHECK(run() == one_by_one);
  CHECK(run() == captured);
  scratch = 100'000;
  CHECK(run() == one_by_one);
  CHECK(run() == one_by_one);
  CHECK(run() == captured);
  scratch = 100;  // the memory suffices
  CHECK(run() == at_once);
}

TEST_CASE_FIXTURE(three_launches, "scratch memory that was replaced is kept until the start") {
  launches.begin(device, &step);
  const std::size_t before = testing::null_traffic().blocks;
  for (std::size_t bytes : {100, 100'000}) {
    const kernel_call call{&in, &out, &first_step, launches.scratch(bytes)};
    launches.add({kernel, call, 1, 1, info.first});
  }
  CHECK(kernel.noted.empty());
  CHECK(testing::null_traffic().blocks == before + 2);
  launches.start(false);
  CHECK(kernel.noted.size() == 2);
  launches.end();
}

TEST_CASE_FIXTURE(three_launches, "a device that captures nothing is asked once") {
  device.can_capture = false;
  CHECK(run() == one_by_one);
  CHECK(run() == started{3, 1, 0});
  CHECK(run() == one_by_one);
}

TEST_CASE_FIXTURE(three_launches, "the item of a failing launch is reported") {
  launches.begin(device, &step);
  add_all();
  CHECK(launches.last() == info.first);
  device.on_launch = [&] { kernel.fails_on = device.launches == 2 ? in : nullptr; };
  CHECK_THROWS_AS(launches.start(false), const error&);
  CHECK(launches.last() == info.first + 1);
  launches.end();
}

namespace {

/// A task whose second device, /null:0, launches segments.
struct with_segments : own_graph {
  testing::small_task task;
  graph_device* device = new graph_device;
  decltype(on(deft::device(""))) scope = on(deft::device("/null:0"));
  variable_slot &slot = slot_of("v"), &other_slot = slot_of("other");

  with_segments() { task.devices.emplace_back(device); }
  executable compiled(std::initializer_list<any_tensor> fetches) {
    auto parts = parts_for(fetches);
    REQUIRE(parts.size() == 1);
    return executable(std::move(parts[0]), task.resources());
  }
  variable_slot& slot_of(const char* name) {
    return *find_variable(task.store, {"variable", "", name}, {dims{3}, dtype::float32});
  }
  void give_zeros(variable_slot& to) {
    buffer b(device->space().allocate(sizeof(float) * 3));
    std::memset(testing::null_memory::hidden(b.data()), 0, sizeof(float) * 3);
    to.value = any_array(dtype::float32, dims{3}, std::move(b));
    to.device = device->info().name;
  }
  /// Whether another thread finds it locked.
  bool is_locked() {
    bool taken = false;
    std::thread([&] {
      if ((taken = slot.guard.try_lock())) slot.guard.unlock();
    }).join();
    return !taken;
  }
};

}  // namespace

TEST_CASE_FIXTURE(with_segments, "a segment's variables are locked until it is started") {
  variable<float, 3> v("v", zeros());
  const any_tensor one = constant<float, 3>({1, 1, 1});
  const auto updated = v.assign_add(tensor<float, 3>(exp(exp(one))));
  for (const any_tensor& fetch : {exp(exp(exp(any_tensor(v)))), any_tensor(updated.value())}) {
    executable code = compiled({fetch});
    give_zeros(slot);
    device->reset();
    int locked = 0;
    device->on_launch = [&] { locked += is_locked(); };
    code.make_frame()->run({}, first_step);
    CHECK(device->launches == 3);
    CHECK(locked == 3);
    CHECK_FALSE(is_locked());
  }
}

TEST_CASE_FIXTURE(with_segments,
                  "elements that a variable no longer holds are kept until the start") {
  variable<float, 3> v("v", zeros()), other("other", zeros());
  const any_tensor value = identity(any_tensor(v));
  const auto assigned = other.assign(tensor<float, 3>(exp(exp(exp(value)))));
  auto after = control_dependencies(assigned);  // between two segments
  executable code = compiled({exp(exp(value + 1))});
  give_zeros(slot), give_zeros(other_slot);
  auto frame = code.make_frame();
  frame->run({}, first_step), frame->release();  // allocates all memory
  device->reset();
  device->can_capture = false;
  std::size_t blocks = 0;
  bool there = true;
  device->on_launch = [&] {
    // As if another plan assigned the variable: then only the run holds the old elements.
    if (device->launches == 3) slot.value = {}, blocks = testing::null_traffic().blocks;
    if (device->launches > 3) there = there && testing::null_traffic().blocks == blocks;
  };
  frame->run({}, first_step);
  CHECK(device->launches == 6);
  CHECK(there);
  CHECK(frame->peek(0).data<float>()[1] == doctest::Approx(std::exp(std::exp(1.f))));
}

TEST_CASE_FIXTURE(with_segments,
                  "a variable that a segment reads and then updates is updated in place") {
  variable<float, 3> v("v", zeros());
  const any_tensor x = exp(exp(any_tensor(v)));
  executable code = compiled({v.assign_add(tensor<float, 3>(x * 0)).value()});
  give_zeros(slot);
  const void* const elements = slot.value.raw();
  auto frame = code.make_frame();
  for (int i = 0; i < 4; ++i) frame->run({}, first_step), frame->release();
  CHECK(slot.value.raw() == elements);
  CHECK(device->captures == 1);
  CHECK(device->replays == 3);
}

TEST_CASE_FIXTURE(with_segments, "an update leaves the results of earlier ones unchanged") {
  variable<float, 3> v("v", zeros());
  const auto ones = constant<float, 3>({1, 1, 1});
  const auto one = v.assign_add(ones);
  auto after_one = control_dependencies(one);
  const auto two = v.assign_add(ones);
  auto after_two = control_dependencies(two);
  const auto three = v.assign_add(ones);
  const any_tensor a = one.value(), b = two.value(), c = three.value();
  executable code = compiled({a * 100 + b * 10 + c});
  give_zeros(slot);
  auto frame = code.make_frame();
  for (float done = 0; done < 12; done += 3) {
    frame->run({}, first_step);
    CHECK(frame->peek(0).data<float>()[2] == 111 * done + 123);
    frame->release();
  }
  CHECK(device->captures == 0);
}
