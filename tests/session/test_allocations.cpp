// SPDX-License-Identifier: Apache-2.0
// What a step allocates in the thread that runs it: nothing, in whatever form it is written.
#include <cstdlib>
#include <new>

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wshadow"
#include <deft/deft.hpp>
#include <deft/kernels/wait_list.hpp>
#pragma GCC diagnostic pop

#include "execute/steps/calling.hpp"
#include "sessions.hpp"

// A program's own names, which nothing that deft's headers declare in functions may hide.
[[maybe_unused]] constexpr int A = 1, B = 1, F = 1, K = 1, N = 1, Op = 1, R = 1, S = 1, T = 1,
                               U = 1, V = 1, W = 1, X = 1, Y = 1;

using namespace deft;
using testing::own_graph;

// Sanitizers have allocators of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

thread_local long allocations = 0;

void* counted(std::size_t n) {
  ++allocations;
  if (void* const block = std::malloc(n ? n : 1)) return block;
  throw std::bad_alloc();
}

/// Allocations of a call of `f`, once it has been called a few times.
template <class F>
long allocations_of(F&& f) {
  constexpr int calls = 20;
  for (int i = 0; i < calls; ++i) f();
  const long before = allocations;
  for (int i = 0; i < calls; ++i) f();
  return (allocations - before) / calls;
}

}  // namespace

void* operator new(std::size_t n) { return counted(n); }
void* operator new[](std::size_t n) { return counted(n); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }

TEST_CASE_FIXTURE(own_graph, "a step allocates nothing, in whatever form it is written") {
  // GPUs take memory of their own.
  auto here = on(device("/cpu:0"));
  placeholder<float> x("x"), y("y");
  placeholder<float, dyn> rows("rows");
  variable<float> w("w", 0.5f), b("b", 0.f);
  variable<float, 1000> large("large", zeros());
  const tensor<float> a = identity(w), c = identity(b);
  const any_tensor any = a;
  const auto step = global_step();
  const auto loss = mean(square(rows * w + b - rows * 3.f));
  const auto train = sgd(0.01f).minimize(loss, step);
  session s;
  s.run(initialize_all());
  const std::vector<float> vector{1, 2, 3};
  const ndarray<float, 3> array{1, 2, 3};
  const auto is_free = [](const std::string& what, auto f) {
    CAPTURE(what);
    CHECK(allocations_of(f) == 0);
  };
  is_free("a tensor", [&] { s.run(a); });
  is_free("an any_tensor", [&] { s.run(any); });
  is_free("two", [&] { s.run(a, c); });
  is_free("a variable", [&] { s.run(w); });
  is_free("a sum", [&] { s.run(a + c); });
  is_free("a sum of variables", [&] { s.run(w + b); });
  is_free("a sum of any_tensors", [&] { s.run(any + any); });
  is_free("an expression", [&] { s.run(a * 2.f + c); });
  is_free("a sum of what is fed", [&] { s.run(x + y, x = 1.f, y = 2.f); });
  is_free("an expression of what is fed", [&] { s.run(x * 2.f + y, y = 1.f, x = 2.f); });
  is_free("a training step", [&] { s.run(train, rows = vector); });
  is_free("a training step of an array", [&] { s.run(train, rows = array); });
  is_free("with values", [&] { s.run(train, loss, step, rows = vector); });
  is_free("options", [&] { s.run(run_options{}, a); });
  is_free("options and an expression",
          [&] { s.run(run_options{}, a + c, x = 1.f, x + y, y = 2.f); });
  is_free("an array", [&] { s.run(large); });

  const auto read = s.prepare(a);
  is_free("a prepared tensor", [&] { read(); });
  const auto sum = s.prepare(x + y, feeds(x, y));
  is_free("a prepared sum", [&] { sum(1.f, 2.f); });
  const auto trained = s.prepare(train, loss, feeds(rows));
  is_free("a prepared training step", [&] { trained(vector); });
  is_free("with options", [&] { trained(run_options{}, array); });
  // Attributes of an operation that is called by name each time.
  CHECK(allocations_of([&] { s.run(mean(square(rows * w + b - rows * 3.f)), rows = array); }) <= 3);
  // What a list returns, and the lists of what is asked for.
  const std::vector<tensor<float>> list{a, c};
  CHECK(allocations_of([&] { s.run(list); }) <= 4);
}

TEST_CASE_FIXTURE(own_graph, "functions that are called allocate nothing after the first time") {
  auto here = on(device("/cpu:0"));
  placeholder<float> x("x");
  placeholder<float, 1000> rows("rows");
  variable<float> count("count", 0.f);
  const tensor<float> y(testing::repeated("outer", 3, any_tensor(x), [&](auto v) {
    count.assign_add(1.f);
    return testing::repeated("inner", 3, v, [&](auto u) { return u * 0.5f + count; });
  }));
  const tensor<float> z(testing::repeated("sum", 4, any_tensor(x),
                                          [&](auto v) { return v + mean(any_tensor(rows)); }));
  session s({.intra_op_threads = 1});
  s.run(initialize_all());
  CHECK(allocations_of([&] { s.run(y, x = 1.f); }) == 0);
  ndarray<float, 1000> ones;
  CHECK(allocations_of([&] { s.run(z, x = 1.f, rows = ones); }) == 0);
}

TEST_CASE("a wait allocates nothing") {
  struct target final : ext::waker::target {
    bool wake(std::uint64_t) override { return true; }
    bool is_over(std::uint64_t) override { return false; }
  };
  const auto woken = std::make_shared<target>();
  ext::wait_list list;
  ext::wait_list::ticket tickets[3];
  CHECK(allocations_of([&] {
          for (auto& t : tickets) list.add(t, ext::waker(woken, 0));
          list.wake_next();
          for (auto& t : tickets) list.add(t, ext::waker(woken, 0));
          list.wake_all();
          for (auto& t : tickets) t.leave();
        }) == 0);
}
#endif
