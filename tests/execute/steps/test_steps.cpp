// SPDX-License-Identifier: Apache-2.0
// Steps of sessions, on the devices that nodes go to by themselves.
#include <malloc.h>
#include <deft/deft.hpp>
#include <thread>

#include "devices.hpp"
#include "kernels/arrays.hpp"
#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::own_graph;
using testing::usual_device;

// Every allocation of this thread is counted. Sanitizers have allocators of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DEFT_TEST_COUNTS_ALLOCATIONS 1
namespace {
thread_local std::size_t allocations = 0;
}
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) { return ++allocations, __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t size) { return ++allocations, __libc_calloc(n, size); }
void* realloc(void* p, std::size_t n) { return ++allocations, __libc_realloc(p, n); }
void* aligned_alloc(std::size_t a, std::size_t n) { return ++allocations, __libc_memalign(a, n); }
}
#endif

TEST_CASE_FIXTURE(own_graph, "a prepared step allocates nothing once it has run") {
#ifdef DEFT_TEST_COUNTS_ALLOCATIONS
  auto here = on(device("/cpu:0"));  // queues of simulated GPUs allocate
  placeholder<float> a("a"), b("b");
  placeholder<float, dyn, 4> x("x");
  variable<float, 4> w("w", zeros());
  auto loss = mean(square(x * w - 1));
  auto [dw] = gradients(loss, w);
  auto train = w.assign_sub(dw * 0.1f);
  session s({.intra_op_threads = 1});
  s.run(initialize_all());
  auto add = s.prepare(a + b, feeds(a, b));
  auto step = s.prepare(operation(train), loss, feeds(x));
  auto batch = std::make_unique<ndarray<float, 8, 4>>();
  auto counted = [](auto f) {
    for (int i = 0; i < 3; ++i) f();
    std::size_t before = allocations;
    for (int i = 0; i < 10; ++i) f();
    return allocations - before;
  };
  CHECK(counted([] { (void)any_array(dtype::float32, dims{3}); }) > 0);
  float sum = 0;
  CHECK(counted([&] { sum = add(1.f, 2.f); }) == 0);
  CHECK(sum == 3.f);
  float l = 0;
  CHECK(counted([&] { l = step(*batch); }) == 0);
  CHECK(l == 1.f);
  // An expression in a loop makes a node and finds it again, and leaves no memory behind.
  auto nodes = g.size();
  for (int i = 0; i < 1000; ++i) sum = s.run(a + b, a = 1.f, b = 5.f);
  CHECK(sum == 6.f);
  CHECK(g.size() <= nodes + 1);
#endif
}

TEST_CASE_FIXTURE(own_graph, "kernels that run on several threads allocate nothing either") {
#ifdef DEFT_TEST_COUNTS_ALLOCATIONS
  auto here = on(device("/cpu:0"));
  // Large enough to be split. Each result is a scalar or a row, which a step may fetch.
  constexpr int rows = 4096, n = 200;
  placeholder<float, rows, n> x("x");
  variable<float, n> w("w", ones());
  tensor<float, rows, n> h = tanh(x * w);
  const std::pair<std::string, any_tensor> all[] = {
      {"sum of everything", sum(x)},
      {"sum of columns", sum(sum(x, axis<0>) * 0.5f)},
      {"fold of what is computed", mean(square(x) * 2.f)},
      {"fold of its columns", sum(sum(h * x, axis<0>))},
      {"softmax's rows and columns", sum(sum(softmax(x) * x, axis<0>))},
      {"elements", sum(max(exp(x * 0.5f) * x, axis<0>))},
      {"argmax of columns", sum(cast(any_tensor(argmax(x, axis<0>)), dtype::float32))},
  };
  session s({.intra_op_threads = 2});
  s.run(initialize_all());
  auto batch = std::make_unique<ndarray<float, dyn, dyn>>(rows, n);
  for (const auto& [what, t] : all) {
    CAPTURE(what);
    auto step = s.prepare(tensor<float>(t), feeds(x));
    for (int i = 0; i < 3; ++i) step(*batch);
    const std::size_t before = allocations;
    for (int i = 0; i < 10; ++i) step(*batch);
    CHECK(allocations == before);
  }
#endif
}

TEST_CASE_FIXTURE(own_graph, "feeds of every kind arrive, and fed fetches come back") {
  placeholder<float, dyn, 2> x("x");
  placeholder<std::int32_t, dyn> list("list");
  placeholder<bool> flag("flag");
  tensor<float, dyn, 2> y = x * 2;
  session s;
  ndarray<float, 2, 2> v{1, 2, 3, 4};
  const float raw[] = {1, 2, 3, 4, 5, 6};
  using result = ndarray<float, dyn, 2>;
  CHECK(s.run(y, x = v) == result{2, 4, 6, 8});
  CHECK(s.run(y, x = ndarray<float, 1, 2>{5, 6}) == result{10, 12});
  CHECK(s.run(y, x = ndarray<float, 3, 2>::view(raw)) == result{2, 4, 6, 8, 10, 12});
  CHECK(s.run(y, x = v.array()) == result{2, 4, 6, 8});
  CHECK(s.run(x, x = v) == result{1, 2, 3, 4});
  CHECK(s.run(y, feed(y, result{9, 9})) == result{9, 9});
  CHECK(s.run(flag, flag = true));
  std::vector<std::int32_t> three{1, 2, 3};
  CHECK(s.run(sum(list), list = three) == 6);
  CHECK(s.run(sum(list), list = std::vector<std::int32_t>{4, 5}) == 9);
  auto [a, b, c] = s.run(list, flag, list, flag = false, list = three);
  CHECK(a == ndarray<std::int32_t, dyn>{1, 2, 3});
  CHECK_FALSE(b);
  CHECK(c == a);
  std::string e = testing::error_of([&] { s.run(y, x = v, x = v); });
  CHECK(e.starts_with("invalid_argument: [run] \"x\" is fed twice at test_steps.cpp:"));
  CHECK(testing::error_of([&] {
          s.run(y);
        }).starts_with("invalid_argument: [placeholder] a value is needed, and none was fed"));
}

TEST_CASE_FIXTURE(own_graph, "extents grow, shrink and vanish between runs") {
  placeholder<float, dyn, 3> x("x");
  placeholder<float, 3, 2> w("w");
  auto h = tanh(matmul(x, w)) * 0 + 1;
  auto total = sum(h);
  tensor<float, dyn, 2> rows = h;
  session s;
  auto step = s.prepare(total, rows, feeds(x, w));
  ndarray<float, 3, 2> weights;
  for (std::int64_t n : {2, 5000, 1, 0, 0, 3, 5000, 64}) {
    CAPTURE(n);
    auto [t, r] = step(ndarray<float, dyn, 3>(n), weights);
    CHECK(t == 2.f * static_cast<float>(n));
    CHECK(r.extent(0) == n);
  }
}

TEST_CASE_FIXTURE(own_graph, "a failed run leaves the session, its plan and its variables usable") {
  placeholder<std::int32_t, dyn> x("x"), y("y");
  variable<std::int32_t> count("count", 0);
  tensor<std::int32_t, dyn> q = x / y;
  operation both = [&] {
    auto after = control_dependencies(q);
    return count.assign_add(1);
  }();
  session s;
  s.run(initialize_all());
  ndarray<std::int32_t, 2> a{8, 9}, good{2, 3}, bad{0, 1};
  ndarray<std::int32_t, 3> other{1, 1, 1};
  for (int i = 1; i <= 3; ++i) {
    s.run(both, x = a, y = good);
    CHECK(
        testing::error_of([&] { s.run(both, x = a, y = bad); }).starts_with("invalid_argument: "));
    CHECK(testing::error_of([&] { s.run(both, x = a, y = other); }).find("(2) (3)") !=
          std::string::npos);
    CHECK(s.run(count) == i);
  }
  variable<float> never("never", 1.f);
  CHECK(testing::error_of([&] {
          s.run(never + 1);
        }).starts_with("failed_precondition: variable \"never\" is not initialized"));
  s.run(never.initializer());
  CHECK(s.run(never + 1) == 2.f);
}

TEST_CASE_FIXTURE(own_graph, "fetched values belong to the caller") {
  placeholder<float, 4> x("x");
  variable<float, 4> v("v", constant({1.f, 1.f, 1.f, 1.f}));
  auto c = constant({7.f, 7.f, 7.f, 7.f});
  auto add = v.assign_add(1.f);
  session s;
  s.run(initialize_all());
  auto fetch = [&](ndarray<float, 4>& in) {
    return s.run(identity(x), reshape(x, shape<2, 2>), identity(c), v, identity(v), x * 2, x = in);
  };
  ndarray<float, 4> in{1, 2, 3, 4};
  auto first = fetch(in);
  in(0) = 50;
  CHECK(std::get<0>(first)(0) == 1.f);
  auto second = fetch(in);
  // Writing to one result changes no other result, constant, variable or feed.
  std::apply([](auto&... a) { ((*a.begin() = -1), ...); }, second);
  CHECK(in(0) == 50.f);
  auto third = fetch(in);
  CHECK(std::get<0>(third)(0) == 50.f);
  CHECK(std::get<1>(third)(0, 0) == 50.f);
  CHECK(std::get<2>(third)(0) == 7.f);
  CHECK(std::get<3>(third)(0) == 1.f);
  CHECK(std::get<5>(third)(0) == 100.f);
  s.run(operation(add));
  CHECK(std::get<3>(third)(0) == 1.f);
  CHECK(std::get<4>(third)(0) == 1.f);
  CHECK(s.run(v)(0) == 2.f);
}

TEST_CASE_FIXTURE(own_graph, "results that are kept are not written by later runs") {
  placeholder<float, dyn> x("x");
  session s;
  auto step = s.prepare(x * 2, exp(x) * 0 + x, feeds(x));
  std::vector<ndarray<float, dyn>> kept;
  for (int i = 0; i < 50; ++i) {
    ndarray<float, dyn> v(1 + i % 3);
    for (auto& e : v) e = static_cast<float>(i);
    auto [a, b] = step(v);
    kept.push_back(std::move(a));
    kept.push_back(std::move(b));
  }
  for (int i = 0; i < 50; ++i) {
    for (float e : std::as_const(kept[2 * i])) CHECK(e == 2.f * static_cast<float>(i));
    for (float e : std::as_const(kept[2 * i + 1])) CHECK(e == static_cast<float>(i));
  }
}

TEST_CASE_FIXTURE(own_graph, "sessions of one task share variables, and those of others do not") {
  variable<float> v("v", 1.f);
  server here = server::local();
  session a(here.target()), b(here.target()), alone;
  a.run(initialize_all());
  a.run(v.assign_add(4.f));
  CHECK(b.run(v) == 5.f);
  CHECK(testing::error_of([&] { alone.run(v); }).starts_with("failed_precondition: "));
  a.reset();
  CHECK(testing::error_of([&] {
          session c(here.target());
          c.run(v);
        }).starts_with("failed_precondition: variable \"v\" is not initialized"));
}

TEST_CASE_FIXTURE(own_graph, "one plan is run by several threads at once") {
  placeholder<float, dyn> x("x");
  placeholder<float, 64, 64> m("m");
  tensor<float, dyn> y = tanh(x) * 0 + x * 2;
  auto total = sum(matmul(m, m));
  session s;
  auto step = s.prepare(y, total, feeds(x, m));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      ndarray<float, 64, 64> ones;
      for (auto& e : ones) e = static_cast<float>(t);
      for (int i = 0; i < 100; ++i) {
        ndarray<float, dyn> v(1 + (i + t) % 5);
        for (auto& e : v) e = static_cast<float>(t);
        auto [a, b] = i % 2 ? step(v, ones) : s.run(y, total, x = v, m = ones);
        wrong += a.extent(0) != v.extent(0);
        for (float e : std::as_const(a)) wrong += e != 2.f * static_cast<float>(t);
        wrong += b != 64.f * 64 * 64 * static_cast<float>(t * t);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE_FIXTURE(own_graph, "no update of several threads is lost, and no read is torn") {
  variable<float, 1000> v("v", zeros());
  auto up = v.assign_add(1.f);
  session s;
  s.run(initialize_all());
  auto update = s.prepare(up, feeds());
  auto read = s.prepare(v, feeds());
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        if (t < 2)
          update();
        else {
          const auto value = read();
          for (float e : value) torn += e != value(0);
        }
      }
    });
  for (auto& t : threads) t.join();
  CHECK(torn == 0);
  CHECK(s.run(v)(999) == 400.f);
}

TEST_CASE_FIXTURE(own_graph, "the process's compiled kernel and the portable program agree") {
  placeholder<float, dyn> x("x");
  auto compiled = tanh(x * 0.5f) * x + 1;
  any_tensor ax(x), by_hand = tanh(ax * 0.5) * ax + 1;
  tensor<float, dyn> named = compiled;
  CHECK(find_fused(*decode<op::fused>(named.handle().node->attributes).program));
  session s, plain({.fuse = false});
  ndarray<float, dyn> v(1001);
  for (int i = 0; i < 1001; ++i) v(i) = static_cast<float>(i - 500) * 0.02f;
  auto a = s.run(named, x = v);
  any_array b = s.run(by_hand, x = v), c = plain.run(by_hand, x = v);
  for (int i = 0; i < 1001; ++i) {
    CHECK(a(i) == b.data<float>()[i]);
    CHECK(a(i) == c.data<float>()[i]);
  }
}

namespace {

/// What steps make of variables on one device by work on another. All sums are exact.
std::vector<any_array> trained(const std::string& variables, const std::string& work,
                               const std::string& target) {
  const own_graph own;
  placeholder<float, dyn, 3> x("x");
  placeholder<std::int32_t, dyn> rows("rows");
  const auto there = [&](auto f) { return on(device(variables), f); };
  auto w = there([] { return variable<float, 5, 3>("w", ones()); });
  auto count = there([] { return variable<std::int32_t>("count", 0); });
  any_tensor loss, taken;
  operation step;
  if (auto here = on(device(work))) {
    taken = gather(w, rows);
    loss = sum(square(taken - x)) + any_tensor(max(w));
    auto [dw] = gradients(loss, w);
    auto after = control_dependencies(dw);
    step = there([&] { return group(w.assign_sub(dw * 0.5f), count.assign_add(1)); });
  }
  session s(target);
  s.run(initialize_all());
  CHECK(s.device_of(w).ends_with(variables));
  CHECK(s.device_of(loss).ends_with(work));
  std::vector<any_array> made;
  for (std::int64_t n : {1, 4, 0, 7}) {
    ndarray<float, dyn, 3> batch(n);
    ndarray<std::int32_t, dyn> indices(n);
    for (std::int64_t i = 0; i < n; ++i) indices(i) = static_cast<std::int32_t>(i * i % 5);
    for (auto& e : batch) e = static_cast<float>(n);
    auto [l, t] = s.run(loss, taken, x = batch, rows = indices);
    made.push_back(l), made.push_back(t);
    s.run(step, x = batch, rows = indices);
    if (n == 0) continue;
    indices(0) = 5;
    const std::string e = testing::error_of([&] { s.run(step, x = batch, rows = indices); });
    CHECK(e.starts_with("out_of_range: [gather] the index 5 is out of range for 5 rows"));
    made.push_back(any_array::scalar(s.run(count)));
    made.push_back(s.run(any_tensor(w)));
  }
  return made;
}

}  // namespace

TEST_CASE("steps over the devices of two tasks give what those of a processor give") {
  const server alone = server::local();
  const auto expected = trained("/cpu:0", "/cpu:0", alone.target());
  local_cluster c{{"ps", 1}, {"worker", 1}};
  const std::string ps = "/job:ps/replica:0/task:0/", worker = "/job:worker/replica:0/task:0/";
  for (const std::string& variables : {ps + "cpu:0", ps + usual_device()})
    for (const std::string& work : {worker + usual_device(), ps + usual_device()}) {
      INFO("variables on ", variables, ", work on ", work);
      const auto made = trained(variables, work, c.target("worker", 0));
      REQUIRE(made.size() == expected.size());
      for (std::size_t i = 0; i < made.size(); ++i) CHECK(testing::identical(made[i], expected[i]));
    }
}

TEST_CASE("a chain of a million nodes is run") {
  constexpr int length = 1'000'000;
  graph g;
  auto in = as_default(g);
  placeholder<float> x("x");
  any_tensor y(x);
  for (int i = 0; i < length; ++i) y = -y;
  {
    session s;
    CHECK(*s.run(y, x = 1.f).data<float>() == 1.f);
  }
  y = {};
  CHECK(g.size() == 1);
}
