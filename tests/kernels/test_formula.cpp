// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/compiled_row_registry.hpp>
#include <deft/kernels/cpu/interpreter.hpp>
#include <deft/kernels/spec/formula_program.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <deft/train/optimizers.hpp>

#include "arrays.hpp"
#include "plan/fusing.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

/// Compares F on n elements by the compiled kernel and by the interpreter. `Inputs` is one more
/// than F's if the rate is a tensor; `repeated` is the operand that has one element.
template <class F, class T, int Inputs = F::inputs>
void compare(std::int64_t n, int repeated) {
  constexpr int operands_of = F::operands, results = F::results;
  const program& p = *program_of_formula<F, T, Inputs>();
  const compiled_row* const found = find_fused(p);
  REQUIRE(found);
  const cpu::interpreter steps(p, true);
  const std::int64_t room = std::max<std::int64_t>({n, found->span, steps.span()});
  std::vector<T> operands[operands_of];
  const void* in[operands_of];
  std::uintptr_t masks[operands_of];
  for (int k = 0; k < operands_of; ++k) {
    operands[k] = values<T>(room, static_cast<std::uint64_t>(k));
    // Sums of squares, and numbers between 0 and 1.
    if (k == 1 || k >= F::inputs)
      for (T& e : operands[k]) e = std::abs(e);
    if (k >= F::inputs)
      for (T& e : operands[k]) e = e < 1e6 ? e / (1 + e) : 0;
    masks[k] = k == repeated || k >= Inputs ? 0 : ~std::uintptr_t{0};
    if (!masks[k]) operands[k].assign(operands[k].size(), operands[k].back());
    in[k] = operands[k].data();
  }
  auto run = [&](bool compiled, bool in_place) {
    std::vector<T> to[results];
    const void* from[operands_of];
    void* out[results];
    std::copy(in, in + operands_of, from);
    for (int k = 0; k < results; ++k) {
      to[k] = operands[k];
      out[k] = to[k].data();
      if (in_place) from[k] = out[k];
    }
    if (compiled)
      found->run({from, masks, out, n});
    else
      steps.run({from, masks, out, n});
    std::vector<any_array> made;
    for (const auto& values_of : to) made.push_back(filled<T>(dims{room}, values_of));
    return made;
  };
  const auto expected = run(false, true);
  for (const bool in_place : {false, true}) {
    const auto got = run(true, in_place);
    for (std::size_t k = 0; k < results; ++k) CHECK(identical(got[k], expected[k]));
  }
  if (n > 1) CHECK_FALSE(identical(expected[0], filled<T>(dims{room}, operands[0])));
}

}  // namespace

TEST_CASE_TEMPLATE("a compiled formula has the interpreter's bits, whichever operand is repeated",
                   T, float, double) {
  for (const std::int64_t n : {1, 2, 7, 8, 16, 17, 31, 64, 1000, 2500})
    for (const int repeated : {-1, 3}) {
      CAPTURE(n);
      CAPTURE(repeated);
      compare<formula::adagrad, T>(n, repeated);
      compare<formula::adagrad, T, 4>(n, repeated);
      compare<formula::momentum<false>, T>(n, repeated);
      compare<formula::momentum<true>, T>(n, repeated);
      compare<formula::nesterov<false>, T>(n, repeated);
      compare<formula::nesterov<true>, T>(n, repeated);
      compare<formula::rmsprop, T>(n, repeated);
      compare<formula::rmsprop, T, 4>(n, repeated);
      compare<formula::adam, T>(n, repeated == 3 ? 4 : repeated);
    }
}

TEST_CASE_FIXTURE(own_graph,
                  "an optimizer's update uses its compiled formula, however it is written") {
  auto is_compiled = [](const any_tensor& updated) {
    const flat_graph f = fused(flat({updated}));
    const node_def& n = f.graph.nodes[static_cast<std::size_t>(f.fetches[0].node)];
    REQUIRE(n.op->name == "fused_update");
    return find_fused(canonical(*decode<op::fused_update>(n.attributes).program)) != nullptr;
  };
  placeholder<float, 4, 3> g("g");
  placeholder<float> rate("rate");
  variable<float, 4, 3> w("w", zeros()), a("a", ones());
  auto squares = a.assign_add(square(g));
  CHECK(is_compiled(w.assign_sub(g * 0.1f / sqrt(squares.value())).value()));
  CHECK(is_compiled(w.assign_sub(g * rate / sqrt(squares.value())).value()));
  CHECK_FALSE(is_compiled(w.assign_sub(0.1f / sqrt(squares.value()) * g).value()));

  auto trains_compiled = [&](const optimizer& o) {
    const flat_graph f = fused(flat(o.apply_gradients({{w, g}})));
    return std::ranges::any_of(f.graph.nodes, [](const node_def& n) {
      return n.op->name == "fused_update" &&
             find_fused(canonical(*decode<op::fused_update>(n.attributes).program)) != nullptr;
    });
  };
  CHECK(trains_compiled(adagrad(0.1)));
  CHECK(trains_compiled(momentum(0.1, 0.9)));
  CHECK(trains_compiled(momentum(rate, 0.9)));
  CHECK(trains_compiled(momentum(0.1, 0.9, {.nesterov = true})));
  CHECK(trains_compiled(momentum(rate, 0.9, {.nesterov = true})));
  CHECK(trains_compiled(rmsprop(0.1)));
  CHECK(trains_compiled(rmsprop(rate)));
  CHECK(trains_compiled(adam(0.1)));
  CHECK(trains_compiled(adam(rate)));
}
