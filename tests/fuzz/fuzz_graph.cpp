// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_graph.cpp: a graph that a client sends is refused, or becomes parts that are
// sound, for two tasks. An input is a graph and what is fetched of it, as metadata.
#include <deft/deft.hpp>
#include <deft/kernels/constant_folding.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/transport/archive.hpp>

#include "fuzzing.hpp"
#include "session/mutate.hpp"
#include "session/sample_model.hpp"

using namespace deft;
using namespace deft::ext;
using fuzzing::bytes;

namespace {

/// What is known when it is planned.
flat_graph constants() {
  graph g;
  auto in = as_default(g);
  any_tensor c = constant({1.f, 2.f, 3.f});
  any_tensor sums = sum(reshape(c * 2.f + 1.f, dims{3, 1}), axes{0});
  any_tensor chosen = where(c > 2.f, sqrt(c), broadcast_to(constant(4.f), shape<3>));
  const output fetches[] = {sums.handle(), chosen.handle()};
  return flatten(fetches, {});
}

flat_graph load(std::span<const std::byte> from) {
  flat_graph flat;
  from_bytes(from, flat.graph, flat.fetches);
  return flat;
}
bytes save(const flat_graph& flat) { return to_bytes(flat.graph, flat.fetches); }

const std::vector<device_info>& devices() {
  static const auto all = [] {
    set_host_memory_limit(std::size_t{256} << 20);
    std::vector<device_info> list;
    for (int i = 0; i < 2; ++i)
      for (auto& info : task_runtime(task_name("worker", i)).devices()) list.push_back(info);
    return list;
  }();
  return all;
}

}  // namespace

std::vector<bytes> fuzzing::seeds() {
  return {save(testing::sample_model(true)), save(constants())};
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  testing::dice d(seed);
  if (d.chance(4)) return LLVMFuzzerMutate(data, size, most);
  bytes made;
  try {
    flat_graph flat = load(fuzzing::as_bytes(data, size));
    for (std::size_t n = 1 + d.below(3); n > 0; --n) testing::mutate(flat.graph, flat.fetches, d);
    made = save(flat);
  } catch (const error&) {
    return LLVMFuzzerMutate(data, size, most);  // some cannot be loaded, some not be saved
  }
  return made.size() > most ? LLVMFuzzerMutate(data, size, most)
                            : fuzzing::replace(data, most, made);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto& there = devices();
  flat_graph flat;
  const bool sound = fuzzing::accepted([&] {
    flat = load(fuzzing::as_bytes(data, size));
    validate(flat.graph);
    for (const auto& n : flat.graph.nodes)
      if (is_transfer(n.op->role)) fail(errc::invalid_argument, "plans make these");
    validate(flat.graph, flat.fetches);
    if (flat.fetches.empty()) fail(errc::invalid_argument, "nothing is fetched");
  });
  if (!sound) return 0;
  static const placement own = intern(task_name("worker", 0));
  const std::size_t fetches = flat.fetches.size();
  plan::prepared made;
  const bool planned = fuzzing::accepted([&] {
    made = plan::run_passes(std::move(flat), there, {.own_task = own}, evaluate_on_host);
  });
  if (!planned) return 0;
  std::size_t fetched = 0;
  for (const auto& p : made.parts) {
    if (!fuzzing::accepted([&] { plan::check_part(p); })) fuzzing::found("a part is not sound");
    fetched += p.fetches.size();
  }
  if (fetched != fetches) fuzzing::found(fetched, " of ", fetches, " fetches are in a part");
  return 0;
}
