// SPDX-License-Identifier: Apache-2.0
// Every allocation of a step fails once: the step ends with an error, and the next one runs.
#include <cerrno>
#include <cstdlib>

#include "session/raw_caller.hpp"

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;

// Sanitizers have allocators of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DEFT_TEST_FAILS_ALLOCATIONS 1
namespace {

/// How many more allocations of this process succeed before one fails; negative: all.
std::atomic<long> left{-1};

bool fails() { return left.load(std::memory_order_relaxed) >= 0 && left.fetch_sub(1) == 0; }
template <class F>
void* unless_it_fails(F&& allocate) {
  if (!fails()) return allocate();
  errno = ENOMEM;
  return nullptr;
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) {
  return unless_it_fails([=] { return __libc_malloc(n); });
}
void* calloc(std::size_t n, std::size_t size) {
  return unless_it_fails([=] { return __libc_calloc(n, size); });
}
void* realloc(void* p, std::size_t n) {
  return unless_it_fails([=] { return __libc_realloc(p, n); });
}
void* aligned_alloc(std::size_t a, std::size_t n) {
  return unless_it_fails([=] { return __libc_memalign(a, n); });
}
}

namespace {

/// A cluster whose steps count on a parameter server, with a value from a third task. On
/// processors: queues of GPUs need memory of their own.
struct counting {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  graph own;
  graph_scope in_own = as_default(own);
  placeholder<float, dyn> x{"x"};
  variable<float> counter =
      on(device("/job:ps/cpu:0"), [] { return variable<float>("counter", zeros()); });
  tensor<float, dyn> twice = on(device("/job:worker/task:1/cpu:0"), [&] { return x * 2.f; });
  assigned<tensor<float>> count =
      on(device("/job:ps/cpu:0"), [&] { return counter.assign_add(sum(twice) * 0.f + 1.f); });
  const std::vector<float> fed = std::vector<float>(3000, 1.f);
  session s;

  explicit counting(bool remote)
      : s(remote ? "deft://" + c.spec().address("worker", 0) : c.target("worker", 0)) {
    s.run(initialize_all());
    step();
  }
  void step() { s.run(count, x = fed); }
  /// What `f` returns, once the tasks have found each other again.
  template <class F>
  auto in_the_end(F f) {
    const auto until = testing::raw_caller::soon();
    for (;;) try {
        return f();
      } catch (const error& e) {
        CHECK((testing::is_loss(e.code()) || e.code() == errc::cancelled));
        if (std::chrono::steady_clock::now() > until) throw;
      }
  }
};

/// Makes allocation `n` of a step fail. Returns whether it had that many.
bool fails_without(long n, bool remote) {
  counting all(remote);
  float acknowledged = 1, tried = 2;
  left = n;
  try {
    all.step();
    ++acknowledged;
  } catch (const error& e) {
    left = -1;
    CAPTURE(std::string(e.what()));
    CHECK((e.code() == errc::resource_exhausted || testing::is_loss(e.code())));
  } catch (const std::bad_alloc&) {
  }
  const bool failed = left.exchange(-1) < 0;
  all.in_the_end([&] {
    ++tried;
    all.step();
  });
  ++acknowledged;
  const float counted = all.in_the_end([&] { return all.s.run(all.counter); });
  CHECK(counted >= acknowledged);
  CHECK(counted <= tried);
  return failed;
}

}  // namespace
#endif

TEST_CASE("a step for which there is no memory fails, and the next one runs") {
#ifdef DEFT_TEST_FAILS_ALLOCATIONS
  testing::log_lines quiet(logging::level::error);
  for (bool remote : {false, true}) {
    CAPTURE(remote);
    long n = 0;
    while (fails_without(n, remote)) ++n;
    CHECK(n > 20);
  }
#else
  MESSAGE("allocations cannot be made to fail here");
#endif
}
