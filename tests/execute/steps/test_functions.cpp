// SPDX-License-Identifier: Apache-2.0
// Functions that a node calls: what they compute, capture, assign and draw, and how they fail and
// wait.
#include <set>
#include <thread>

#include "calling.hpp"
#include "devices.hpp"
#include "fifo.hpp"
#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::own_graph;
using testing::pop, testing::push, testing::repeated;

namespace {

float only(const any_array& a) { return a.item<float>(); }

/// What `f` throws.
template <class F>
error failure(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e;
  }
  return error(errc::unknown, "nothing was thrown");
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "a function is called with what it gave before") {
  placeholder<float> x("x");
  const any_tensor y = repeated("double", 10, any_tensor(x), [](auto v) { return v * 2; });
  session s;
  CHECK(only(s.run(y, x = 1.f)) == 1024.f);
  CHECK(only(s.run(y, x = 3.f)) == 3072.f);
  CHECK(only(s.run(y + y, x = 1.f)) == 2048.f);
}

TEST_CASE_FIXTURE(own_graph,
                  "a body captures values, constants and what a captured value came from") {
  placeholder<float, dyn> x("x"), b("b");
  const any_tensor c = any_tensor(b) + 1, one = constant(1.f);
  const any_tensor y =
      repeated("affine", 3, any_tensor(x), [&](auto v) { return v * 2 + c + one; });
  session s;
  // 2 v + 3, three times
  const any_array got = s.run(y, x = {0.f, 1.f}, b = {1.f, 1.f});
  CHECK(got.data<float>()[0] == 21.f);
  CHECK(got.data<float>()[1] == 29.f);
  // Extents change from run to run.
  CHECK(s.run(y, x = {0.f}, b = {1.f}).elements() == 1);
}

TEST_CASE_FIXTURE(own_graph, "functions are nested, and capture through all that are around them") {
  placeholder<float> x("x"), k("k");
  const any_tensor y = repeated("outer", 2, any_tensor(x), [&](auto a) {
    return repeated("middle", 2, a, [&](auto b) {
      return repeated("inner", 2, b, [&](auto c) { return c + any_tensor(k) * a; });
    });
  });
  session s;
  // Inside `outer`, a is fixed: four additions of k a, so a becomes 5 a for k = 1.
  CHECK(only(s.run(y, x = 1.f, k = 1.f)) == 25.f);
  CHECK(only(s.run(y, x = 2.f, k = 0.f)) == 2.f);
}

TEST_CASE_FIXTURE(own_graph, "a variable is read and assigned in the order of the body") {
  placeholder<float> x("x");
  variable<float> v("v", 1.f);
  const any_tensor y = repeated("body", 3, any_tensor(x), [&](auto state) {
    const any_tensor before = v + 0.f;
    v.assign(v + 1.f);
    const any_tensor after = v + 0.f;
    v.assign_add(10.f);
    return state + before * after;
  });
  session s;
  s.run(initialize_all());
  // v: 1, 12, 23; products 1 2, 12 13, 23 24
  CHECK(only(s.run(y, x = 0.f)) == 2.f + 156.f + 552.f);
  CHECK(s.run(v) == 34.f);
  // A read of the same run outside comes before what the function does.
  auto both = s.run(v * 1.f, y, x = 0.f);
  CHECK(std::get<0>(both) == 34.f);
  CHECK(s.run(v) == 67.f);
}

TEST_CASE_FIXTURE(own_graph, "an assignment in a body is run though no result needs it") {
  placeholder<float> x("x");
  variable<float> v("v", 0.f);
  const any_tensor y = repeated("body", 5, any_tensor(x), [&](auto state) {
    v.assign_add(1.f);
    return state;
  });
  session s;
  s.run(initialize_all());
  CHECK(only(s.run(y, x = 7.f)) == 7.f);
  CHECK(s.run(v) == 5.f);
}

TEST_CASE_FIXTURE(own_graph, "updates by a function and outside of it need an order") {
  placeholder<float> x("x");
  variable<float> v("v", 0.f);
  const any_tensor y = repeated("body", 2, any_tensor(x), [&](auto state) {
    v.assign_add(1.f);
    return state;
  });
  session s;
  s.run(initialize_all());
  auto set = v.assign(5.f);
  CHECK_THROWS_WITH_AS(s.run(y, set, x = 1.f), doctest::Contains("updated twice in one run"),
                       error);
  {
    auto after = control_dependencies(y);
    auto then = v.assign(v * 10.f);
    s.run(then, x = 1.f);
  }
  CHECK(s.run(v) == 20.f);
}

TEST_CASE_FIXTURE(own_graph,
                  "each call draws other random numbers, the same ones in each process") {
  auto draws = [] {
    graph own;
    auto there = as_default(own);
    set_seed(5);
    const any_tensor x = constant(ndarray<float, 4>{});
    std::vector<any_tensor> all;
    for (int call = 0; call < 2; ++call)
      all.push_back(repeated("draw", 3, x, [&](auto v) {
        return repeated("add", 2, v, [](auto u) { return u * 16.f + random_uniform(shape<4>); });
      }));
    session s({.stream = 1});
    std::vector<float> seen;
    for (int run = 0; run < 2; ++run)
      for (const auto& t : all)
        for (float f : s.run(t).template span<float>()) seen.push_back(f);
    return seen;
  };
  const auto first = draws();
  CHECK(std::set<float>(first.begin(), first.end()).size() == first.size());
  CHECK(draws() == first);
}

TEST_CASE_FIXTURE(own_graph, "an error inside names the nodes that lead to it") {
  placeholder<std::int32_t> x("x");
  any_tensor y;
  {
    auto scope = name_scope("steps");
    y = repeated("outer", 2, any_tensor(x), [](auto a) {
      return repeated("inner", 2, a, [](auto b) { return constant(12) / (b - 4); });
    });
  }
  session s;
  // 6 gives 6, 6, …
  CHECK(s.run(y, x = 6).item<std::int32_t>() == 6);
  const error e = failure([&] { s.run(y, x = 4); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(e.node() == "steps/test_repeat/test_repeat/div");
  CHECK(std::string(e.where().file).ends_with("test_functions.cpp"));
  CHECK(e.device().ends_with(testing::usual_device()));
  // The session and its frames can be used again.
  CHECK(s.run(y, x = 6).item<std::int32_t>() == 6);
}

TEST_CASE_FIXTURE(own_graph, "a function that waits holds up nothing but its caller") {
  placeholder<float, dyn> x("x");
  const any_tensor taken = repeated("take", 3, constant(ndarray<float, 1>{0.f}), [](auto sum) {
    return sum + reshape(pop("functions"), shape<1>);
  });
  operation put = push("functions", any_tensor(x));
  session s;
  std::thread reader([&] { CHECK(s.run(taken).template data<float>()[0] == 6.f); });
  for (int i = 1; i <= 3; ++i) s.run(put, x = {static_cast<float>(i)});
  reader.join();
  // In one step: the queue alone decides who waits for whom.
  auto r = s.run(any_tensor(x) * 2.f, put, x = {5.f});
  CHECK(r.data<float>()[0] == 10.f);
  s.run(put, x = {6.f});
  auto both = s.run(taken, put, x = {7.f});
  CHECK(both.data<float>()[0] == 18.f);
}

TEST_CASE_FIXTURE(own_graph, "a function that waits ends with its step") {
  using namespace std::chrono_literals;
  placeholder<float, dyn> x("x");
  const any_tensor taken = repeated("outer", 2, constant(ndarray<float, 1>{0.f}), [](auto sum) {
    return repeated("inner", 2, sum, [](auto v) { return v + reshape(pop("ended"), shape<1>); });
  });
  operation put = push("ended", any_tensor(x));
  session s({.timeout = 60s});
  s.run(put, x = {1.f});
  SUBCASE("by its deadline") {
    const error e = failure([&] { s.run(run_options{.timeout = 20ms}, taken); });
    CHECK(e.code() == errc::deadline_exceeded);
  }
  SUBCASE("by an error of another node") {
    const any_tensor wrong = any_tensor(x) + constant(ndarray<float, 3>{});
    const error e = failure([&] { s.run(taken, wrong, x = {1.f, 2.f}); });
    CHECK(e.code() == errc::invalid_argument);
    CHECK(e.node() == "add");
  }
  // What the failed run has taken is gone; the next one is served in order.
  for (int i = 0; i < 2; ++i) s.run(put, x = {2.f});
  std::thread writer([&] {
    for (int i = 0; i < 2; ++i) s.run(put, x = {2.f});
  });
  CHECK(s.run(taken).template data<float>()[0] == 8.f);
  writer.join();
}

TEST_CASE_FIXTURE(own_graph, "a body is placed with the node that calls it") {
  placeholder<float, 4> x("x");
  auto body = [](auto v) {
    const any_tensor there = v * 2.f;
    auto here = on(device("/cpu:0"));
    const any_tensor on_cpu = there + 1.f;
    return on_cpu;
  };
  any_tensor y, z;
  {
    auto there = on(device("/gpu:1"));
    y = repeated("body", 3, any_tensor(x), body) + 1.f;
  }
  {
    auto there = on(device("/cpu:0"));
    z = repeated("body", 3, any_tensor(x), body) + 1.f;
  }
  session s({.simulated_gpus = 2});
  const ndarray<float, 4> ones{1.f, 1.f, 1.f, 1.f};
  for (int i = 0; i < 3; ++i) {
    CHECK(s.run(y, x = ones).template data<float>()[3] == 16.f);
    CHECK(s.run(z, x = ones).template data<float>()[3] == 16.f);
  }
}

TEST_CASE_FIXTURE(own_graph, "equal calls of pure functions are one node") {
  const any_tensor x = constant(2.f);
  auto twice = [](auto v) { return v * 2; };
  const any_tensor a = repeated("f", 3, x, twice), b = repeated("f", 3, x, twice);
  CHECK(a.handle() == b.handle());
  auto drawing = [](auto v) { return v + random_uniform(shape<>); };
  CHECK_FALSE(repeated("f", 3, x, drawing).handle() == repeated("f", 3, x, drawing).handle());
}

TEST_CASE_FIXTURE(own_graph, "what is used in the wrong graph is refused by name") {
  placeholder<float> x("x");
  any_tensor kept;
  repeated("body", 2, any_tensor(x), [&](auto v) { return kept = v * 2; });
  CHECK_THROWS_WITH_AS(kept + 1.f, doctest::Contains("\"body\""), error);
  CHECK_THROWS_WITH_AS(any_tensor(x) + kept, doctest::Contains("is in the body of \"body\""),
                       error);
  CHECK_THROWS_WITH_AS(repeated("body", 2, any_tensor(x),
                                [](auto v) {
                                  variable<float> made("made", 0.f);
                                  return v + made;
                                }),
                       doctest::Contains("make it outside"), error);
  graph other;
  any_tensor foreign;
  {
    auto there = as_default(other);
    foreign = constant(ndarray<float, 2>{});
  }
  CHECK_THROWS_AS(repeated("body", 2, any_tensor(x), [&](auto v) { return v + foreign; }), error);
  // Nothing of it is left current.
  CHECK(current_graph() == g);
}

TEST_CASE_FIXTURE(own_graph, "the value of a variable that a function uses is not fed") {
  placeholder<float> x("x");
  variable<float> v("v", 1.f);
  const any_tensor y = repeated("body", 2, any_tensor(x), [&](auto s) { return s + v; });
  session s;
  CHECK_THROWS_WITH_AS(s.run(y + v, x = 1.f, v = 2.f), doctest::Contains("\"v\" is fed"), error);
}

TEST_CASE_FIXTURE(own_graph, "functions run on the task of their node") {
  local_cluster c{{"ps", 1}, {"worker", 1}};
  placeholder<float> x("x");
  placeholder<std::int32_t> divisor("divisor");
  any_tensor y, z, split;
  {
    auto there = on(device("/job:ps/task:0"));
    variable<float> v("v", 1.f);
    y = repeated("body", 3, any_tensor(x), [&](auto state) {
      v.assign_add(1.f);
      return repeated("inner", 2, state, [&](auto u) { return u * 2.f; }) + v;
    });
    z = repeated("divide", 2, any_tensor(divisor), [](auto d) { return constant(4) / d; });
    split = repeated("split", 2, any_tensor(x), [](auto state) {
      auto elsewhere = on(device("/job:worker/task:0"));
      return state * 2.f;
    });
  }
  session s(c.target("worker", 0));
  s.run(initialize_all());
  // 4 x + 2, 4 x + 3, 4 x + 4
  CHECK(only(s.run(y + 1.f, x = 1.f)) == 64.f + 32.f + 12.f + 4.f + 1.f);
  const error e = failure([&] { s.run(z, divisor = 0); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(e.node().ends_with("/div"));
  CHECK(e.device() == "/job:ps/replica:0/task:0/" + testing::usual_device());
  const error apart = failure([&] { s.run(split, x = 1.f); });
  CHECK(apart.code() == errc::unimplemented);
  CHECK(apart.message().find("the body of a function runs on one task") != std::string::npos);
}
