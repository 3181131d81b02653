// SPDX-License-Identifier: Apache-2.0
// Plans of a session: which runs share one, and how many it keeps.
#include <malloc.h>

#include <deft/session/session.hpp>
#include <thread>

#include "sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::outcome_of;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "an expression in a loop leaves nothing behind") {
  session s;
  placeholder<float, dyn> x("x");
  ndarray<float, 3> in{1, 2, 3};
  auto run = [&] { return s.run(x * 2.f + 1.f, x = in)(0); };
  CHECK(run() == 3);
  std::size_t nodes = g.size();
  // Counts allocated bytes: the system's view of the process includes what malloc keeps.
  const auto used = [] { return mallinfo2().uordblks; };
  const std::size_t before = used();
  for (int i = 0; i < 100'000; ++i) run();
  CHECK(g.size() == nodes);
  CHECK(used() < before + 100'000);  // less than a byte per run: caches of threads count as used
}

namespace {

/// An engine that counts the plans which another one makes.
class counting_engine final : public engine {
 public:
  counting_engine(std::shared_ptr<engine> other, int& plans)
      : other_(std::move(other)), plans_(plans) {}
  std::shared_ptr<ready_plan> make_plan(flat_graph flat, const plan_limits& limits) override {
    ++plans_;
    return other_->make_plan(std::move(flat), limits);
  }
  plan_description describe(flat_graph flat, const plan_limits& limits) override {
    return other_->describe(std::move(flat), limits);
  }
  std::vector<device_info> devices() override { return other_->devices(); }
  step_fate fate_of(std::uint64_t step, std::chrono::steady_clock::time_point until) override {
    return other_->fate_of(step, until);
  }
  void close() override { other_->close(); }
  void reset(const std::string& container) override { other_->reset(container); }

 private:
  std::shared_ptr<engine> other_;
  int& plans_;
};

}  // namespace

TEST_CASE_FIXTURE(own_graph, "an expression with another literal each time has two plans") {
  int plans = 0;
  server here = server::local();
  session s(std::make_shared<counting_engine>(detail::engine_at(here.target(), {}), plans),
            session_options{});
  placeholder<float, dyn> x("x");
  placeholder<int> n("n");
  ndarray<float, 3> in{1, 2, 3};
  for (int i = 0; i < 50; ++i) {
    const auto k = static_cast<float>(i);
    auto [scaled, total, whole] = s.run(x * k + 1.f, sum(x - k) * 2.f, n * 3 + i, x = in, n = i);
    CHECK(scaled == ndarray<float, dyn>{k + 1, 2 * k + 1, 3 * k + 1});
    CHECK(total == 2 * (6 - 3 * k));
    CHECK(whole == 4 * i);
  }
  CHECK(plans == 2);
  // A literal that had not varied before makes a third plan, to which it is fed too.
  auto two = [&](float a, float b) { return s.run(x * a + b, x = in)(0); };
  plans = 0;
  for (int i = 0; i < 10; ++i) CHECK(two(static_cast<float>(i), 1.f) == static_cast<float>(i + 1));
  for (int i = 0; i < 10; ++i) CHECK(two(3.f, static_cast<float>(i)) == static_cast<float>(i + 3));
  CHECK(plans == 2);
  auto step = s.prepare(x * 100.f - 5.f, feeds(x));
  CHECK(step(in)(2) == 295);
  // An error names the line of the expression.
  const auto line = static_cast<unsigned>(__LINE__) + 1;
  auto divided = [&](int by) { return s.run(identity(n / by), n = 7); };
  for (int by : {7, 3, 2}) CHECK(divided(by) == 7 / by);
  auto o = outcome_of([&] { divided(0); });
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.line == line);
}

TEST_CASE_FIXTURE(own_graph, "constants whose hashes were made to collide share no plan") {
  session s;
  // FNV-1a gives both the same hash.
  const std::uint8_t a[] = {0xb1, 0x29, 0x11, 0xc0, 0x6e, 0x0c, 0xe3, 0x7a, 0x49, 0x3a, 0x85};
  const std::uint8_t b[] = {0x85, 0x37, 0xd1, 0xb1, 0x8f, 0x66, 0x43, 0xa0, 0xce, 0x33, 0xad};
  static_assert(sizeof a == sizeof b);
  auto one = [&](const auto& v, float k) { return s.run(cast<float>(constant(v)) * k); };
  one(a, 2.f);
  one(b, 3.f);
  const auto third = one(a, 5.f);
  for (int i = 0; i < 11; ++i) CHECK(third(i) == 5.f * a[i]);
}

TEST_CASE_FIXTURE(own_graph, "a value shared by a thousand nodes is computed once") {
  session s;
  tensor<float> drawn = random_uniform(shape<>);
  tensor<float> sum = drawn;
  for (int i = 1; i < 1000; ++i) sum = sum + drawn;
  auto [one, all] = s.run(drawn, sum);
  CHECK(all == doctest::Approx(1000 * one));
  const std::string plan = explain(s, sum);
  std::size_t draws = 0;
  for (std::size_t at = 0; (at = plan.find(" = random_uniform(", at)) != plan.npos; ++at) ++draws;
  CHECK(draws == 1);
}

TEST_CASE_FIXTURE(own_graph, "the plan cache drops the least recently used plan") {
  session s({.cached_plans = 2});
  tensor<float> a = constant(1.f);
  auto run = [&](float k) { return s.run(a + k); };
  for (int i = 0; i < 20; ++i) CHECK(run(static_cast<float>(i)) == static_cast<float>(i + 1));
  std::size_t nodes = g.size();
  for (int i = 20; i < 60; ++i) run(static_cast<float>(i));
  CHECK(g.size() == nodes);
}

TEST_CASE_FIXTURE(own_graph,
                  "threads that share a cache of one plan take nothing from each other") {
  session s({.cached_plans = 1});
  tensor<float, 1000> a = broadcast_to(constant(1.f), shape<1000>);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto in = as_default(g);
      for (int i = 0; i < 200; ++i) {
        auto v = s.run(a + static_cast<float>(t));
        if (v(999) != static_cast<float>(1 + t)) ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}
