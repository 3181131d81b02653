// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "executing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::fed;
using testing::first_of;
using testing::first_step;
using testing::nothing;
using testing::own_graph;
using testing::part_for;
using testing::slot_of;
using testing::small_task;
using testing::start;
using testing::task_name;

TEST_CASE_FIXTURE(own_graph, "a frame runs again and again, with other feeds and other shapes") {
  placeholder<float, dyn, 2> x("x");
  any_tensor y = exp(any_tensor(x)) + 1, s = sum(y, axes{0});
  small_task task;
  executable code(part_for({y, s}, {x}), task.resources());
  auto frame = code.make_frame();
  for (std::int64_t rows : {3, 3, 1000, 1, 0, 7, 7, 0, 3}) {
    CAPTURE(rows);
    ndarray<float, dyn, 2> v(rows);
    feed_ref f[] = {fed(v)};
    start(*frame, f);
    CHECK(frame->peek(0).shape() == dims{rows, 2});
    CHECK(frame->peek(1).shape() == dims{2});
    CHECK(frame->peek(1).data<float>()[1] == 2.f * static_cast<float>(rows));
    for (float e : frame->peek(0).span<float>()) CHECK(e == 2.f);
  }
}

TEST_CASE_FIXTURE(own_graph, "a taken value is never overwritten") {
  placeholder<float, dyn> x("x");
  any_tensor y = any_tensor(x) * 2, r = reshape(y, dims{1, 3}), z = y + 1;
  small_task task;
  executable code(part_for({y, r, z}, {x}), task.resources());
  auto frame = code.make_frame();
  std::vector<any_array> kept;
  for (float k = 0; k < 20; ++k) {
    ndarray<float, 3> v{k, k, k};
    feed_ref f[] = {fed(v)};
    start(*frame, f);
    for (std::size_t i = 0; i < 3; ++i) kept.push_back(frame->take(i));
    frame->release();
  }
  for (std::size_t k = 0; k < 20; ++k) {
    CHECK(first_of(kept[3 * k]) == 2.f * static_cast<float>(k));
    CHECK(first_of(kept[3 * k + 1]) == 2.f * static_cast<float>(k));
    CHECK(first_of(kept[3 * k + 2]) == 2.f * static_cast<float>(k) + 1);
  }
}

TEST_CASE_FIXTURE(own_graph, "a value that was only peeked at is overwritten in place") {
  placeholder<float, 64> x("x");
  any_tensor y = any_tensor(x) * 2;
  small_task task;
  executable code(part_for({y}, {x}), task.resources());
  auto frame = code.make_frame();
  ndarray<float, 64> v;
  feed_ref f[] = {fed(v)};
  start(*frame, f);
  const void* elements = frame->peek(0).raw();
  for (int i = 0; i < 3; ++i) {
    start(*frame, f);
    CHECK(frame->peek(0).raw() == elements);
  }
}

TEST_CASE_FIXTURE(own_graph,
                  "values whose lifetimes do not overlap share memory, and stay correct") {
  placeholder<float, 16> x("x");
  any_tensor y(x);
  std::vector<any_tensor> all;
  for (int i = 0; i < 40; ++i) {
    y = i % 3 == 0 ? y + any_tensor(x) : i % 3 == 1 ? reshape(y, dims{4, 4}) : reshape(y, dims{16});
    if (i % 7 == 0) all.push_back(y);
  }
  any_tensor total = sum(y);
  for (const auto& a : all) total = total + sum(a);
  small_task task;
  executable code(part_for({total}, {x}), task.resources());
  auto frame = code.make_frame();
  ndarray<float, 16> v;
  for (int i = 0; i < 16; ++i) v(i) = 1;
  // Each element of y is (number of additions + 1) times that of x.
  float expected = 0;
  for (int i = 0, k = 1; i < 40; ++i) {
    k += i % 3 == 0;
    if (i % 7 == 0) expected += 16.f * static_cast<float>(k);
    if (i == 39) expected += 16.f * static_cast<float>(k);
  }
  for (int run = 0; run < 3; ++run) {
    feed_ref f[] = {fed(v)};
    start(*frame, f);
    CHECK(first_of(frame->peek(0)) == expected);
  }
}

TEST_CASE_FIXTURE(own_graph, "a result takes the memory of an input that it may overwrite") {
  constexpr std::int64_t n = 1 << 22;  // 32 MB a value
  placeholder<double, n> x("x");
  any_tensor y(x);
  for (int i = 0; i < 8; ++i) y = abs(y);
  ndarray<double, dyn> v(n);
  for (auto& e : v) e = -1;
  const std::size_t before = recycled_host_memory();
  {
    small_task task;
    executable code(part_for({sum(y)}, {x}), task.resources());
    auto frame = code.make_frame();
    feed_ref f[] = {fed(v)};
    start(*frame, f);
    CHECK(*frame->peek(0).data<double>() == static_cast<double>(n));
  }
  CHECK(recycled_host_memory() <= before + n * sizeof(double) * 3 / 2);
}

TEST_CASE_FIXTURE(own_graph, "values of other sizes that share memory have room for the largest") {
  // Of 2.25 and 3.5 MB; a block of the host's memory has whole huge pages.
  constexpr std::int64_t few = 9 << 16, many = 14 << 16;
  placeholder<float, dyn> x("x"), y("y");
  const any_tensor short_lived = exp(any_tensor(x)), kept = tanh(short_lived);
  any_tensor first = sum(short_lived), large, last;
  if (auto after = control_dependencies(first, kept)) large = exp(any_tensor(y));
  const any_tensor middle = sum(large);
  if (auto after = control_dependencies(middle)) last = sum(abs(kept));
  small_task task;
  executable code(part_for({first, middle, last}, {x, y}), task.resources());
  auto frame = code.make_frame();
  ndarray<float, dyn> zeros_of_x(few), zeros_of_y(many);
  for (int run = 0; run < 3; ++run) {
    feed_ref f[] = {fed(zeros_of_x), fed(zeros_of_y)};
    start(*frame, f);
    CHECK(first_of(frame->peek(0)) == static_cast<float>(few));
    CHECK(first_of(frame->peek(1)) == static_cast<float>(many));
    CHECK(first_of(frame->peek(2)) ==
          doctest::Approx(std::tanh(1.f) * static_cast<float>(few)).epsilon(1e-4));
  }
}

TEST_CASE_FIXTURE(own_graph, "a value that is used later is not overwritten") {
  placeholder<float, 8> x("x");
  const any_tensor y = exp(any_tensor(x)), twice = y + y, same = reshape(y, dims{2, 4}), z = abs(y),
                   w = reshape(z * z, dims{2, 4}) + same;
  small_task task;
  executable code(part_for({sum(twice), sum(w)}, {x}), task.resources());
  auto frame = code.make_frame();
  ndarray<float, 8> zeros;
  for (auto& e : zeros) e = 0;
  for (int run = 0; run < 3; ++run) {
    feed_ref f[] = {fed(zeros)};
    start(*frame, f);
    CHECK(first_of(frame->peek(0)) == 16);
    CHECK(first_of(frame->peek(1)) == 16);
  }
}

TEST_CASE_FIXTURE(own_graph,
                  "a failed run names node, source location and device, and the next succeeds") {
  placeholder<std::int32_t, dyn> x("x"), y("y");
  any_tensor z = on(device("/cpu:1"), [&] { return any_tensor(x) / any_tensor(y); });
  name(z, "quotient");
  small_task task;
  executable code(part_for({z}, {x, y}), task.resources());
  auto frame = code.make_frame();
  ndarray<std::int32_t, 2> a{6, 8}, zero{1, 0}, two{3, 2};
  ndarray<std::int32_t, 3> three{1, 2, 3};
  auto run = [&](const auto& p, const auto& q) {
    feed_ref f[] = {fed(p), fed(q)};
    return testing::error_of([&] { frame->run(f, first_step); });
  };
  for (int i = 0; i < 3; ++i) {
    CHECK(run(a, two).empty());
    CHECK(frame->peek(0).data<std::int32_t>()[1] == 4);
    std::string e = run(a, zero);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: [div]"));
    CHECK(e.find("node \"div\" at test_executor.cpp:") != std::string::npos);
    CHECK(e.find("/job:localhost/replica:0/task:0/cpu:1") != std::string::npos);
    e = run(a, three);
    CHECK(
        e.starts_with("invalid_argument: [div] the operands' shapes cannot be broadcast "
                      "together: (2) (3), node \"div\""));
    CHECK(run(three, three).empty());
    CHECK(frame->peek(0).shape() == dims{3});
  }
}

TEST_CASE_FIXTURE(own_graph,
                  "feeds are checked again, and a placeholder without a feed is an error") {
  placeholder<float, dyn, 2> x("x"), other("other");
  any_tensor y = exp(any_tensor(x)), z = exp(any_tensor(other));
  small_task task;
  executable code(part_for({y}, {x}), task.resources());
  auto frame = code.make_frame();
  ndarray<float, 2, 3> wide;
  feed_ref f[] = {fed(wide)};
  std::string e = testing::error_of([&] { frame->run(f, first_step); });
  CHECK(
      e.starts_with("invalid_argument: [feed] float(2,3) is fed where float(?,2) is expected, "
                    "node \"x\""));
  executable lacking(part_for({z}), task.resources());
  e = testing::error_of([&] { lacking.make_frame()->run({}, first_step); });
  CHECK(
      e.starts_with("invalid_argument: [placeholder] a value is needed, and none was fed, node "
                    "\"other\" at test_executor.cpp:"));
}

TEST_CASE_FIXTURE(own_graph, "variables are updated in place unless the elements are shared") {
  variable<float, 1000> v("v", zeros());
  any_tensor init = v.assign(v.initial_value()).value(), up = v.assign_add(1.f).value(), read(v);
  small_task task;
  auto run = [&](const executable& code, auto f) {
    auto frame = code.make_frame();
    start(*frame, nothing);
    return f(*frame);
  };
  executable initialize(part_for({init}), task.resources()),
      update(part_for({up}), task.resources()), fetch(part_for({read}), task.resources());
  auto& slot = slot_of(task, {dims{1000}, dtype::float32});
  CHECK(testing::error_of([&] { update.make_frame()->run({}, first_step); })
            .starts_with(
                "failed_precondition: variable \"v\" is not initialized, node \"assign_add\""));
  run(initialize, [](auto&) {});
  const void* elements = slot.value.raw();
  // A constant is never written to.
  for (int i = 0; i < 2; ++i) run(update, [](auto& f) { f.release(); });
  CHECK(slot.value.raw() == elements);
  CHECK(first_of(slot.value) == 2.f);
  any_array held = run(fetch, [](auto& f) { return f.take(0); });
  run(update, [](auto& f) { CHECK(first_of(f.peek(0)) == 3.f); });
  CHECK(first_of(held) == 2.f);
  CHECK(slot.value.raw() != elements);
  run(initialize, [](auto&) {});
  CHECK(first_of(slot.value) == 0.f);
}

TEST_CASE_FIXTURE(own_graph, "a variable that is fed keeps its state") {
  variable<float, 2> v("v", zeros());
  any_tensor init = v.assign(v.initial_value()).value(), y = any_tensor(v) * 2;
  small_task task;
  executable initialize(part_for({init}), task.resources()),
      with_feed(part_for({y}, {v}), task.resources()), plain(part_for({y}), task.resources());
  start(*initialize.make_frame(), nothing);
  auto frame = with_feed.make_frame();
  ndarray<float, 2> five{5, 5};
  feed_ref f[] = {fed(five)};
  start(*frame, f);
  CHECK(first_of(frame->peek(0)) == 10.f);
  frame = plain.make_frame();
  start(*frame, nothing);
  CHECK(first_of(frame->peek(0)) == 0.f);
}

TEST_CASE_FIXTURE(own_graph, "a fed value that a variable takes over is copied") {
  variable<float, 2> v("v", zeros());
  placeholder<float, 2> x("x");
  any_tensor set = assign(any_tensor(v), identity(any_tensor(x))).value();
  small_task task;
  executable code(part_for({set}, {x}), task.resources());
  ndarray<float, 2> value{1, 2};
  {
    auto frame = code.make_frame();
    feed_ref f[] = {fed(value)};
    start(*frame, f);
  }
  value(0) = 9;
  CHECK(first_of(slot_of(task, {dims{2}, dtype::float32}).value) == 1.f);
}

namespace {

/// Values that arrive when the test says so.
class mailbox final : public rendezvous {
 public:
  std::map<std::size_t, any_array> arrived;
  std::vector<any_array> sent;
  waker waiting;
  int flushed = 0;

  void send(std::size_t, const any_array& value) override { sent.push_back(value); }
  void flush(bool) override { ++flushed; }
  bool receive(std::size_t number, any_array& value, const waker& w) override {
    auto at = arrived.find(number);
    if (at == arrived.end()) return waiting = w, false;
    value = at->second;
    return true;
  }
};

/// Records what a run reports.
class notes final : public step_driver {
 public:
  std::vector<std::uint32_t> woken;
  bool over = false;
  void wake(std::uint32_t lane) override { woken.push_back(lane); }
  void ended() override { over = true; }
};

}  // namespace

TEST_CASE_FIXTURE(own_graph, "a part waits for missing values, and resumes when they arrive") {
  placeholder<float, dyn> x("x");
  auto elsewhere = [&] { return on(device("/job:ps/replica:0/task:0/cpu:0")); };
  any_tensor a = exp(any_tensor(x));
  any_tensor b = [&] {
    auto there = elsewhere();
    return tanh(a);
  }();
  any_tensor c = b + a;
  const output fetch = c.handle(), feed = x.handle();
  flat_graph flat = flatten({&fetch, 1}, {&feed, 1});
  for (auto& n : flat.graph.nodes)
    n.device = intern(merge(merge(task_name(), parse_device("/cpu:0")),
                            n.requested ? *n.requested : device_name()));
  auto parts = plan::cut(flat.graph, flat.fetches);
  REQUIRE(parts.size() == 2);
  plan::part mine = std::move(parts[parts[0].task->job == "localhost" ? 0 : 1]);
  small_task task;
  executable code(std::move(mine), task.resources());
  REQUIRE(code.sends().size() == 1);
  REQUIRE(code.receives().size() == 1);
  CHECK(to_string(*code.sends()[0].peer) == "/job:ps/replica:0/task:0");
  CHECK(code.sends()[0].key != code.receives()[0].key);
  auto frame = code.make_frame();
  for (int n : {2, 3}) {
    mailbox io;
    ndarray<float, dyn> v(n);
    feed_ref f[] = {fed(v)};
    notes driver;
    const step_context context{.step = 1, .exchange = &io};
    CHECK_FALSE(frame->start(f, context, driver));
    REQUIRE(io.sent.size() == 1);
    CHECK(io.sent[0].shape() == dims{n});
    CHECK(io.flushed > 0);
    // Wake-ups may be spurious.
    CHECK(io.waiting());
    REQUIRE(driver.woken.size() == 1);
    frame->resume(driver.woken[0]);
    CHECK(io.sent.size() == 1);
    CHECK_FALSE(driver.over);
    any_array answer(dtype::float32, {n});
    for (int i = 0; i < n; ++i) answer.mutable_data<float>()[i] = 10;
    io.arrived.emplace(0, answer);
    CHECK(io.waiting());
    frame->resume(driver.woken.back());
    CHECK(driver.over);
    CHECK_FALSE(io.waiting());  // the run is over
    CHECK(frame->failure() == nullptr);
    CHECK(frame->peek(0).shape() == dims{n});
    CHECK(first_of(frame->peek(0)) == 11.f);
  }
  mailbox io;
  io.arrived.emplace(0, any_array(dtype::float64, {2}));
  ndarray<float, dyn> v(2);
  feed_ref f[] = {fed(v)};
  CHECK(testing::error_of([&] {
          frame->run(f, {.step = 1, .exchange = &io});
        }).starts_with("invalid_argument: [recv] double(2) was received; expected float(?)"));
}

TEST_CASE_FIXTURE(own_graph, "a part for a missing device is refused") {
  placeholder<float> x("x");
  any_tensor y = exp(any_tensor(x));
  plan::part p = part_for({y}, {x});
  p.graph.nodes[1].device = intern(parse_device("/job:localhost/replica:0/task:0/gpu:5"));
  small_task task;
  std::string e = testing::error_of([&] { executable code(std::move(p), task.resources()); });
  INFO(e);
  CHECK(
      e.starts_with("invalid_argument: [exp] there is no device "
                    "\"/job:localhost/replica:0/task:0/gpu:5\" on this task, node \"exp\""));
}

namespace {
class listener final : public step_observer {
 public:
  std::vector<std::string> seen;
  void begin(const node_label& n, std::uint32_t) override { seen.push_back(str("begin ", n.name)); }
  void end(const node_label& n, std::uint32_t) override { seen.push_back(str("end ", n.name)); }
};
}  // namespace

TEST_CASE_FIXTURE(own_graph, "an observer sees every item begin and end") {
  placeholder<float> x("x");
  any_tensor y = exp(any_tensor(x)), z = tanh(y);
  small_task task;
  executable code(part_for({z}, {x}), task.resources());
  auto frame = code.make_frame();
  ndarray<float> v(0.f);
  feed_ref f[] = {fed(v)};
  for (int i = 0; i < 2; ++i) {
    listener l;
    frame->run(f, {.step = 1, .observer = &l});
    CHECK(l.seen == std::vector<std::string>{"begin exp", "end exp", "begin tanh", "end tanh"});
    frame->run(f, first_step);  // an observer is optional
  }
}

TEST_CASE_FIXTURE(own_graph, "plans that run in turn share the memory of their activations") {
  constexpr std::int64_t n = 4 << 20;  // 16 MB a value
  placeholder<float, dyn> x("x");
  small_task task;
  std::vector<std::unique_ptr<executable>> codes;
  std::vector<std::unique_ptr<executable::frame>> frames;
  ndarray<float, dyn> v(n);
  std::size_t most = 0;
  for (int i = 0; i < 6; ++i) {
    any_tensor a = exp(any_tensor(x)), b = tanh(a) + static_cast<float>(i), y = sum(a * b);
    codes.push_back(std::make_unique<executable>(part_for({y}, {x}), task.resources()));
    frames.push_back(codes.back()->make_frame());
    for (int run = 0; run < 2; ++run) {
      feed_ref f[] = {fed(v)};
      start(*frames.back(), f);
    }
    if (i == 0) most = recycled_host_memory();
  }
  // Memory that one plan used is kept for the next.
  CHECK(recycled_host_memory() <= most + most / 2);
}
