// SPDX-License-Identifier: Apache-2.0
// Steps that wait for the elements of a resource, by an operation that only this program has.
#include <deft/deft.hpp>
#include <deft/kernels/wait_list.hpp>
#include <deque>

#include "executing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::first_of;
using testing::nothing;
using testing::own_graph;
using testing::small_task;

namespace {

/// Numbers, which steps take.
class shelf final : public resource {
 public:
  void put(float x) {
    wake_at_end woken(waiting);
    std::lock_guard lock(guard_);
    there_.push_back(x);
    woken.next();
  }
  bool take(value_call& c) {
    std::lock_guard lock(guard_);
    if (!c.state().has_value()) c.state() = 0;
    ++std::any_cast<int&>(c.state());
    if (there_.empty()) return c.wait_in(waiting);
    c.output(0, any_array::scalar(there_.front()));
    there_.pop_front();
    calls = std::any_cast<int>(c.state());
    return true;
  }
  void clear() override {}
  std::size_t bytes() const override { return 0; }
  std::string describe() const override { return "shelf"; }

  wait_list waiting;
  int calls = 0;  ///< of the kernel, in the run that took last

 private:
  std::mutex guard_;
  std::deque<float> there_;
};

const resource_key& shelf_key() {
  static const auto& key = *new resource_key{"test_shelf", "", "shelf"};
  return key;
}
std::shared_ptr<shelf> shelf_of(resource_store& store) {
  return store.get<shelf>(shelf_key(), [] { return std::make_shared<shelf>(); });
}

struct take_op {
  static constexpr std::string_view name = "test_take";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::waits;
  resource_ref resource() const { return {shelf_key(), {}}; }
  tensor_type infer(std::span<const tensor_type>) const { return {dims{}, dtype::float32}; }
  static value_kernel_ptr make_value(const value_request& r) {
    return std::make_unique<kernel>(shelf_of(r.resources));
  }

 private:
  struct kernel final : value_kernel {
    explicit kernel(std::shared_ptr<shelf> s) : from(std::move(s)) {}
    bool run(value_call& c) const override { return from->take(c); }
    const std::shared_ptr<shelf> from;
  };
};

/// A run of a part, whose lanes go on when the test says so.
class waiting_run final : public step_driver {
 public:
  explicit waiting_run(const executable& code) : frame_(code.make_frame()) {}

  void start() {
    woken = over = false;
    over = frame_->start(nothing, step_, *this);
  }
  void go_on() { frame_->resume(std::exchange(lane_, 0)); }
  void stop() { stop_.request_stop(); }
  float value() { return first_of(frame_->peek(0)); }
  errc failure() const { return frame_->failure() ? frame_->failure()->code() : errc{}; }
  void wake(std::uint32_t lane) override {
    woken = true;
    lane_ = lane;
  }
  void ended() override { over = true; }

  bool woken = false, over = false;

 private:
  const std::unique_ptr<executable::frame> frame_;
  std::stop_source stop_;
  const std::stop_token token_ = stop_.get_token();
  const step_context step_{.step = 1, .stop = token_};
  std::uint32_t lane_ = 0;
};

struct takers : own_graph {
  any_tensor taken = make_node(take_op(), here());
  small_task task;
  executable code{testing::part_for({taken}), task.resources()};
  std::shared_ptr<shelf> from = shelf_of(task.store);
  waiting_run first{code}, second{code}, third{code};
};

}  // namespace

TEST_CASE_FIXTURE(takers, "waiting steps are served in the order of their arrival") {
  for (int i = 0; i < 2; ++i) {
    second.start();
    first.start();
    CHECK(from->waiting.size() == 2);
    from->put(1);
    CHECK(second.woken);
    CHECK_FALSE(first.woken);
    second.go_on();
    CHECK(second.over);
    CHECK(second.value() == 1);
    CHECK(from->calls == 2);
    from->put(2);
    first.go_on();
    CHECK(first.over);
    CHECK(first.value() == 2);
    CHECK(from->waiting.size() == 0);
    // What is there is taken at once, by a run that knows nothing of those before.
    from->put(3);
    third.start();
    CHECK(third.over);
    CHECK(from->calls == 1);
  }
}

TEST_CASE_FIXTURE(takers, "a step that is cancelled leaves nothing behind, and is passed over") {
  first.start();
  second.start();
  third.start();
  CHECK(from->waiting.size() == 3);
  first.stop();
  first.go_on();
  CHECK(first.over);
  CHECK(first.failure() == errc::cancelled);
  CHECK(from->waiting.size() == 2);
  from->put(1);
  CHECK(second.woken);
  CHECK_FALSE(third.woken);
  SUBCASE("what it was woken for the next one gets") {
    second.stop();
    second.go_on();
    CHECK(second.failure() == errc::cancelled);
    CHECK(third.woken);
    third.go_on();
    CHECK(third.value() == 1);
  }
  SUBCASE("what it has taken is gone") {
    second.go_on();
    second.stop();
    CHECK(second.value() == 1);
    CHECK_FALSE(third.woken);
    third.stop();
    third.go_on();
  }
  CHECK(from->waiting.size() == 0);
}

TEST_CASE_FIXTURE(takers, "a step that another one forestalls keeps its place") {
  first.start();
  second.start();
  from->put(1);
  CHECK(first.woken);
  third.start();
  CHECK(third.over);
  first.woken = false;
  first.go_on();
  CHECK_FALSE(first.over);
  from->put(2);
  CHECK(first.woken);
  CHECK_FALSE(second.woken);
  for (waiting_run* r : {&first, &second}) r->stop(), r->go_on();
  CHECK(first.over);
  CHECK(second.over);
}

TEST_CASE_FIXTURE(own_graph, "a step that waits for a variable and is cancelled leaves its list") {
  const variable<float> v("v", 0.f);
  const operation waits = await_initialized(v);
  small_task task;
  const output fetch{waits.handle(), run_only};
  flat_graph flat = flatten({&fetch, 1}, {});
  for (auto& n : flat.graph.nodes)
    n.device = intern(merge(testing::task_name(), parse_device("/cpu:0")));
  std::vector<plan::part> parts = plan::cut(flat.graph, flat.fetches);
  REQUIRE(parts.size() == 1);
  const executable code(std::move(parts[0]), task.resources());
  variable_slot& slot = testing::slot_of(task, {dims{}, dtype::float32});
  for (int i = 0; i < 2; ++i) {
    waiting_run run(code);
    run.start();
    CHECK(slot.waiting.size() == 1);
    run.stop();
    run.go_on();
    CHECK(run.over);
    CHECK(slot.waiting.size() == 0);
  }
}
