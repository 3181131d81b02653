// SPDX-License-Identifier: Apache-2.0
// What a step reports to its rendezvous and its observer, and when.
#include <deft/deft.hpp>
#include <map>

#include "execute/executing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::fed;
using testing::own_graph;
using testing::small_task;

namespace {

/// Records events in order. Sent values are dropped; `arrive` delivers the one that is received.
class journal final : public rendezvous {
 public:
  std::vector<std::string> lines;

  void send(std::size_t, const any_array&) override { lines.push_back("send"); }
  void flush(bool) override {
    // Repeated flushes count as one.
    if (lines.empty() || lines.back() != "flush") lines.push_back("flush");
  }
  bool receive(std::size_t, any_array& value, const waker& w) override {
    lines.push_back("receive");
    return take(value, w);
  }
  bool take(any_array& value, const waker& w) {
    if (broken_) fail(errc::unavailable, "it can no longer come");
    value = value_;
    if (!value.valid()) waiting_.push_back(w);
    return value.valid();
  }
  void arrive() {
    value_ = any_array::scalar(1.f);
    wake();
  }
  void break_off() {
    broken_ = true;
    wake();
  }

 private:
  void wake() {
    for (const auto& w : std::exchange(waiting_, {})) w();
  }
  any_array value_;
  bool broken_ = false;
  std::vector<waker> waiting_;
};
journal& journal_of(const step_context& s) { return *static_cast<journal*>(s.exchange); }

/// Returns its first operand after `nanoseconds`; fails if that is negative.
struct work_op {
  static constexpr std::string_view name = "test_work";
  static constexpr int arity = 1, max_arity = -1;
  std::int64_t nanoseconds = 0;
  static constexpr auto fields = field_list(field{"nanoseconds", &work_op::nanoseconds});
  tensor_type infer(std::span<const tensor_type> in) const { return in[0]; }
};
struct work_kernel final : kernel {
  explicit work_kernel(std::int64_t n) : nanoseconds(n) {}
  void prepare(std::span<const tensor_type>, std::span<const tensor_type>) override {}
  void run(const kernel_call& c) override {
    if (c.step->exchange) journal_of(*c.step).lines.push_back(str("run ", nanoseconds));
    const float x = *static_cast<const float*>(c.in[0]);
    if (x < -1) throw 42;
    if (x < 0) fail(errc::invalid_argument, "[test_work] it is negative");
    *static_cast<float*>(c.out[0]) = x;
  }
  double cost() const override { return static_cast<double>(nanoseconds); }
  const std::int64_t nanoseconds;
};

/// A value from outside the step.
struct gate_op {
  static constexpr std::string_view name = "test_gate";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::waits;
  bool open = false;  ///< the value has arrived
  static constexpr auto fields = field_list(field{"open", &gate_op::open});
  tensor_type infer(std::span<const tensor_type>) const { return {dims{}, dtype::float32}; }
};
struct gate_kernel final : value_kernel {
  explicit gate_kernel(bool o) : open(o) {}
  bool run(value_call& c) const override {
    journal& j = journal_of(c.step());
    j.lines.push_back("gate");
    any_array value = any_array::scalar(1.f);
    if (!open && !j.take(value, c.make_waker())) return false;
    c.output(0, std::move(value));
    return true;
  }
  const bool open;
};

/// Yields its operand, and may take long: as what writes files.
struct file_op {
  static constexpr std::string_view name = "test_file";
  static constexpr int arity = 1;
  tensor_type infer(std::span<const tensor_type> in) const { return in[0]; }
};
struct file_kernel final : value_kernel {
  bool run(value_call& c) const override {
    journal_of(c.step()).lines.push_back("file");
    c.output(0, c.input(0));
    return true;
  }
  bool is_long() const override { return true; }
};

const bool registered = [] {
  static constexpr dtype_set any_type = all_dtypes | dtype_set{dtype::none};
  static constexpr kernel_entry table[] = {
      {work_op::name, any_type,
       [](const node_def& n, std::span<const tensor_type>) -> kernel_ptr {
         return std::make_unique<work_kernel>(decode<work_op>(n.attributes).nanoseconds);
       }},
      {gate_op::name, any_type, nullptr,
       [](const value_request& r) -> value_kernel_ptr {
         return std::make_unique<gate_kernel>(decode<gate_op>(r.node.attributes).open);
       }},
      {file_op::name, any_type, nullptr,
       [](const value_request&) -> value_kernel_ptr { return std::make_unique<file_kernel>(); }},
  };
  register_op(record_of<work_op>);
  register_op(record_of<file_op>);
  register_op(record_of<gate_op>);
  register_cpu_kernels(table);
  return true;
}();

any_tensor work(std::initializer_list<any_tensor> of, std::int64_t nanoseconds) {
  std::vector<output> in;
  for (const auto& t : of) in.push_back(t.handle());
  return detail::add_node(record_of<work_op>, encode(work_op{nanoseconds}), in, here());
}
any_tensor gate(bool open) {
  return detail::add_node(record_of<gate_op>, encode(gate_op{open}), {}, here());
}
any_tensor on_other_task(const any_tensor& t) {
  return on(device("/task:1"), [&] { return work({t}, 1); });
}

/// Runs the first task's part; `go_on` resumes its lanes.
class running final : public step_driver {
 public:
  running(std::initializer_list<any_tensor> fetches, const any_tensor& x)
      : code_(part_of(fetches, x), task_.resources()), frame_(code_.make_frame()) {}

  /// Returns true if the run has ended.
  bool start(float x, step_observer* observer = nullptr) {
    step_.emplace(
        step_context{.step = 1, .exchange = &journal, .stop = token_, .observer = observer});
    x_ = ndarray<float>(x);
    const feed_ref feeds[] = {fed(x_)};
    return over = frame_->start(feeds, *step_, *this);
  }
  void stop() { stop_.request_stop(); }
  void wake(std::uint32_t lane) override { frame_->resume(lane); }
  void ended() override { over = true; }
  std::shared_ptr<const error> failure() const { return frame_->failure(); }
  std::size_t lanes() const { return code_.lanes(); }

  ::journal journal;
  bool over = false;

 private:
  static plan::part part_of(std::initializer_list<any_tensor> fetches, const any_tensor& x) {
    std::vector<plan::part> parts = testing::parts_for(fetches, {x});
    return std::move(parts.at(0));
  }

  small_task task_;
  executable code_;
  std::unique_ptr<executable::frame> frame_;
  std::stop_source stop_;
  const std::stop_token token_ = stop_.get_token();
  std::optional<step_context> step_;
  ndarray<float> x_;
};
using lines = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(own_graph, "sent values are flushed before an item above 20 us, and at the end") {
  placeholder<float> x("x");
  const any_tensor made = work({any_tensor(x)}, 1'000);
  const any_tensor medium = work({made}, 19'000), last = work({work({medium}, 21'000)}, 2'000);
  running r({on_other_task(made), on_other_task(last), last}, any_tensor(x));
  CHECK(r.lanes() == 1);
  for (int i = 0; i < 2; ++i) {
    r.journal.lines.clear();
    CHECK(r.start(1));
    CHECK(r.journal.lines == lines{"run 1000", "send", "run 19000", "flush", "run 21000",
                                   "run 2000", "send", "flush"});
  }
}

TEST_CASE_FIXTURE(own_graph, "sent values are flushed before a long item that is a single row") {
  placeholder<float> x("x");
  const any_tensor made = work({any_tensor(x)}, 1'000);
  // 25 us of compiled work, whose operands keep their addresses from run to run.
  const tensor<float, 30'000> wide(broadcast_to(made, dims{30'000}));
  const tensor<float, 30'000> long_one = tanh(exp(tanh(exp(wide))));
  const any_tensor last = work({made, any_tensor(long_one)}, 2'000);
  running r({on_other_task(made), last}, any_tensor(x));
  CHECK(r.lanes() == 1);
  for (int i = 0; i < 3; ++i) {
    r.journal.lines.clear();
    CHECK(r.start(1));
    CHECK(r.journal.lines == lines{"run 1000", "send", "flush", "run 2000", "flush"});
  }
}

TEST_CASE_FIXTURE(own_graph, "sent values are flushed before a file is written") {
  placeholder<float> x("x");
  const any_tensor made = work({any_tensor(x)}, 1'000);
  const output in[] = {made.handle()};
  const any_tensor written = detail::add_node(record_of<file_op>, encode(file_op()), in, here());
  running r({on_other_task(made), written}, any_tensor(x));
  CHECK(r.start(1));
  CHECK(r.journal.lines == lines{"run 1000", "send", "flush", "file", "flush"});
}

TEST_CASE_FIXTURE(own_graph, "sent values are flushed when the lane parks for a value") {
  placeholder<float> x("x");
  const any_tensor made = work({any_tensor(x)}, 1'000);
  const any_tensor back = on_other_task(made);
  running r({work({back}, 2'000), gate(false)}, any_tensor(x));
  CHECK(r.lanes() == 2);
  CHECK_FALSE(r.start(1));
  CHECK(r.journal.lines == lines{"run 1000", "send", "receive", "flush", "gate", "flush"});
  r.journal.lines.clear();
  r.journal.arrive();
  CHECK(r.over);
  CHECK(r.failure() == nullptr);
  CHECK(r.journal.lines == lines{"receive", "run 2000", "flush", "gate", "flush"});
}

TEST_CASE_FIXTURE(own_graph, "sent values are flushed when their lane ends and another one waits") {
  placeholder<float> x("x");
  const any_tensor made = work({any_tensor(x)}, 1'000), late = gate(false);
  running r({on_other_task(made), late}, any_tensor(x));
  CHECK(r.lanes() == 2);
  CHECK_FALSE(r.start(1));
  CHECK(r.journal.lines == lines{"run 1000", "send", "flush", "gate", "flush"});
  r.journal.arrive();
  CHECK(r.over);
}

TEST_CASE_FIXTURE(own_graph, "sent values are flushed when the lane parks for another lane") {
  placeholder<float> x("x");
  const any_tensor there = gate(true);
  const any_tensor back = on_other_task(there), made = work({any_tensor(x), back}, 1'000);
  running r({work({there, made}, 2'000)}, any_tensor(x));
  CHECK(r.lanes() == 2);
  CHECK_FALSE(r.start(1));
  CHECK(r.journal.lines == lines{"gate", "send", "flush", "receive", "flush"});
  r.journal.arrive();
  CHECK(r.over);
}

namespace {

/// Counts items, and checks that in a lane one item ends before the next one begins.
class balance final : public step_observer {
 public:
  void begin(const node_label& n, std::uint32_t lane) override {
    CHECK_FALSE(open.contains(lane));
    open[lane] = &n;
    ++begun[n.op->name];
  }
  void end(const node_label& n, std::uint32_t lane) override {
    REQUIRE(open.contains(lane));
    CHECK(open[lane] == &n);
    open.erase(lane);
  }
  std::map<std::uint32_t, const node_label*> open;
  std::map<std::string_view, int> begun;
};
using counts = std::map<std::string_view, int>;

}  // namespace

TEST_CASE_FIXTURE(own_graph, "an observer sees the begin and end of items that park") {
  placeholder<float> x("x");
  const any_tensor back = on_other_task(work({any_tensor(x)}, 1)), late = gate(false);
  running r({work({back}, 1), late}, any_tensor(x));
  balance seen;
  CHECK_FALSE(r.start(1, &seen));
  CHECK(seen.open.empty());
  CHECK(seen.begun == counts{{"test_work", 1}, {"send", 1}, {"recv", 1}, {"test_gate", 1}});
  seen.begun.clear();
  SUBCASE("and resume") {
    r.journal.arrive();
    CHECK(r.over);
    CHECK(r.failure() == nullptr);
    CHECK(seen.begun == counts{{"recv", 1}, {"test_gate", 1}, {"test_work", 1}});
  }
  SUBCASE("and then throw") {
    r.journal.break_off();
    CHECK(r.over);
    REQUIRE(r.failure());
    CHECK(r.failure()->code() == errc::unavailable);
    CHECK(seen.begun == counts{{"recv", 1}});
  }
  SUBCASE("and are cancelled") {
    r.stop();
    CHECK(r.over);
    REQUIRE(r.failure());
    CHECK(r.failure()->code() == errc::cancelled);
    CHECK(seen.begun == counts{});
  }
  CHECK(seen.open.empty());
}

TEST_CASE_FIXTURE(own_graph, "a kernel may throw any type") {
  placeholder<float> x("x");
  const any_tensor first = work({any_tensor(x)}, 1);
  for (bool may_park : {false, true}) {
    CAPTURE(may_park);
    running r({first, may_park ? on_other_task(first) : first}, any_tensor(x));
    const std::string said = testing::error_of([&] { r.start(-2); });
    CHECK(said.starts_with("internal: "));
    CHECK(said.find("an exception of an unknown type") != std::string::npos);
    CHECK(said.find("node \"test_work\"") != std::string::npos);
    CHECK(r.start(1));
  }
}

TEST_CASE_FIXTURE(own_graph, "an observer sees the begin and end of items that throw") {
  placeholder<float> x("x");
  const any_tensor first = work({any_tensor(x)}, 1), second = work({first}, 2);
  for (bool may_park : {false, true}) {
    CAPTURE(may_park);
    running r({second, may_park ? on_other_task(second) : second}, any_tensor(x));
    balance seen;
    CHECK(testing::error_of([&] { r.start(-1, &seen); }).find("node \"test_work\"") !=
          std::string::npos);
    CHECK(seen.open.empty());
    CHECK(seen.begun == counts{{"test_work", 1}});
    seen.begun.clear();
    CHECK(r.start(1, &seen));
    CHECK(seen.open.empty());
    CHECK(seen.begun["test_work"] == 2);
  }
}
