// SPDX-License-Identifier: Apache-2.0
// benchmarks/spine.cpp: the cost of a step and a node in one process, and the memory that they
// keep.
//
// bench_spine [--peers ENVIRONMENT]: torch's eager add is measured in turns if torch is installed.
#include <malloc.h>

#include <atomic>
#include <deft/deft.hpp>

#include "bench.hpp"
#include "program.hpp"

// Every allocation of the process is counted.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}
namespace {
std::atomic<long> allocations{0};
}
extern "C" void* malloc(std::size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(n);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, n);
}

namespace {

using namespace deft;
using namespace deft::ext;

/// torch's eager add, or the published figure.
struct torch_add {
  std::unique_ptr<bench::program> peer;
  double published = 0.8e-6;

  torch_add(const std::string& python, const std::string& folder) {
    if (python.empty()) return;
    peer = std::make_unique<bench::program>(
        std::vector<std::string>{python, folder + "/torch_add.py"});
    if (peer->ask().empty()) peer.reset();
  }
  bench::measure turn() {
    return [this] { return peer ? std::stod(peer->ask()) : published; };
  }
  std::string name() const { return peer ? "torch eager" : "torch, published"; }
};

void scalar_add(torch_add& torch) {
  session s;
  placeholder<float> x("x"), y("y");
  auto step = s.prepare(x + y, feeds(x, y));
  auto o = bench::in_turns(bench::timed([&] {
                             float sum = step(1.5f, 2.5f);
                             bench::keep(sum);
                           }),
                           torch.turn());
  long before = allocations;
  for (int i = 0; i < 1000; ++i) bench::keep(step(1.5f, 2.5f));
  long made = allocations - before;
  bench::time_row(str("scalar add, prepared and fetched; ", made / 1000., " allocations"), o,
                  torch.name(), bench::at_most(0.5));
}

void written_in_a_loop(torch_add& torch) {
  session s;
  variable<float> a("a", zeros()), b("b", zeros());
  s.run(initialize_all());
  auto once = [&] { bench::keep(s.run(a + b)); };
  auto o = bench::in_turns(bench::timed(once), torch.turn());
  std::size_t nodes = current_graph().size(), memory = mallinfo2().uordblks;
  bench::seconds_of(once, 100'000);
  auto more_nodes = static_cast<long>(current_graph().size() - nodes);
  auto more_memory = static_cast<long>(mallinfo2().uordblks - memory);
  bench::time_row(str("s.run(a + b) in a loop; left: ", more_nodes, " nodes, ", more_memory, " B"),
                  o, torch.name(), bench::at_most(2));
}

/// Every expression is new, and so is its node; the plan is not.
void another_literal(torch_add& torch) {
  session s;
  variable<float> a("scaled", ones());
  s.run(initialize_all());
  float k = 0;
  auto once = [&] { bench::keep(s.run(a * (k += 0.5f))); };
  bench::seconds_of(once, 1000);  // the cache of plans is full
  bench::time_row("s.run(a * k), another k each time",
                  bench::in_turns(bench::timed(once), torch.turn()), torch.name(),
                  bench::at_most(5));
}

/// The session's options disable folding and fusion; every node needs the previous one.
void chain() {
  constexpr int nodes = 10'000;
  session s({.fold = false, .fuse = false});
  placeholder<float> x("x");
  tensor<float> end = x;
  for (int i = 0; i < nodes; ++i) end = end + x;
  auto step = s.prepare(end, feeds(x));
  auto turn = bench::timed([&] { bench::keep(step(1.f)); });
  auto o = bench::in_turns([&] { return turn() / nodes; }, [] { return 44e-9; });
  bench::time_row("chain of 10,000 scalar adds, fold and fuse off, a node", o, "ggml, published",
                  bench::at_most(25. / 44));
}

}  // namespace

int main(int argc, char** argv) {
  torch_add torch(bench::python_of(bench::flag(argc, argv, "peers")), BENCH_PEERS);
  scalar_add(torch);
  written_in_a_loop(torch);
  another_literal(torch);
  chain();
}
