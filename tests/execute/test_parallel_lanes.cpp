// SPDX-License-Identifier: Apache-2.0
// The lanes of the host's work run on several threads.
#include <condition_variable>
#include <deft/kernels/team.hpp>
#include <mutex>

#include "executing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::fed;
using testing::first_step;
using testing::own_graph;
using testing::part_for;
using testing::small_task;

namespace {
struct threads {
  explicit threads(int n) { set_intra_op_threads(n); }
  ~threads() { set_intra_op_threads(0); }
};

/// Waits at an item of each lane until the other lane has reached its item.
class meeting final : public step_observer {
 public:
  explicit meeting(std::vector<std::string> at) : at_(std::move(at)) {}
  void begin(const node_label& n, std::uint32_t) override {
    if (std::ranges::count(at_, n.name.str()) == 0) return;
    std::unique_lock lock(guard_);
    ++there_;
    changed_.notify_all();
    met = changed_.wait_for(lock, std::chrono::minutes(1), [&] { return there_ >= 2; });
  }
  void end(const node_label&, std::uint32_t) override {}
  bool met = false;

 private:
  const std::vector<std::string> at_;
  std::mutex guard_;
  std::condition_variable changed_;
  int there_ = 0;
};
}  // namespace

TEST_CASE_FIXTURE(own_graph,
                  "chains run in parallel, also after common work and with a dyn batch") {
  threads two(2);
  for (bool batch : {false, true})
    for (int common : {0, 3}) {
      CAPTURE(batch);
      CAPTURE(common);
      graph own;
      auto in = as_default(own);
      any_tensor x = make_placeholder("x", dtype::float32, {batch ? dyn : 96, 96});
      any_tensor by = make_placeholder("by", dtype::float32, {96, 96});
      any_tensor start = x;
      for (int i = 0; i < common; ++i) start = matmul(start, by);
      auto chain = [&](any_tensor t, const std::string& middle) {
        for (int i = 0; i < 12; ++i) {
          t = matmul(t, by);
          if (i == 6) t = name(t, middle);
        }
        return t;
      };
      any_tensor both = chain(start, "one") + chain(start * 2.f, "other");
      small_task task;
      executable code(part_for({both}, {x, by}), task.resources());
      REQUIRE(code.lanes() == 2);
      auto frame = code.make_frame();
      ndarray<float, 96, 96> v;
      std::ranges::fill(v, 0.01f);
      feed_ref f[] = {fed(v), fed(v)};
      std::vector<std::string> at;
      for (const char* n : {"one", "other"}) at.push_back(name_of(*own.find(n)));
      meeting m(at);
      frame->run(f, {.step = 1, .observer = &m});
      CHECK(m.met);
    }
}

TEST_CASE_FIXTURE(own_graph, "independent chains run on two threads, with the same bits") {
  placeholder<float, 96, 96> x("x"), y("y");
  placeholder<std::int32_t> d("d");
  auto chain = [](any_tensor t, const any_tensor& by) {
    for (int i = 0; i < 12; ++i) t = matmul(t, by) * 0.01f;
    return t;
  };
  any_tensor a = chain(any_tensor(x), any_tensor(y)), b = chain(any_tensor(y), any_tensor(x));
  any_tensor both = a + b, quotient = any_tensor(d) / any_tensor(d);
  ndarray<float, 96, 96> u, v;
  for (int i = 0; i < 96; ++i)
    for (int k = 0; k < 96; ++k) {
      u(i, k) = static_cast<float>((i * 7 + k) % 13) / 13;
      v(i, k) = static_cast<float>((i + k * 5) % 11) / 11;
    }
  small_task task;
  auto run = [&](int n, std::size_t lanes, int times) {
    threads t(n);
    executable code(part_for({both, quotient}, {x, y, d}), task.resources());
    CHECK(code.lanes() == lanes);
    auto frame = code.make_frame();
    any_array last;
    for (int i = 0; i < times; ++i) {
      const ndarray<std::int32_t> one(1), zero(0);
      feed_ref bad[] = {fed(u), fed(v), fed(zero)}, good[] = {fed(u), fed(v), fed(one)};
      if (i % 5 == 4)
        CHECK(testing::error_of([&] {
                frame->run(bad, first_step);
              }).starts_with("invalid_argument: [div]"));
      frame->run(good, first_step);
      last = frame->take(0);
    }
    return last;
  };
  const any_array expected = run(1, 1, 1);
  CHECK(run(2, 2, 60) == expected);
}
