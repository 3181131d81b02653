// SPDX-License-Identifier: Apache-2.0
#include <deft/execute/cpu/formula.hpp>
#include <deft/execute/cpu/interpreter.hpp>
#include <deft/op/formulas.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <deft/train/optimizer.hpp>

#include "arrays.hpp"
#include "plan/fusing.hpp"
#include "testing.hpp"

using namespace deft;
using namespace testing;

namespace {

/// Adagrad of n elements by the compiled kernel and by the interpreter. `Inputs` is 4 where the
/// rate is a tensor; `repeated`: the operand that is one element.
template <class T, int Inputs>
void compare(std::int64_t n, int repeated) {
  using kernel = cpu::formula_kernel<formula::adagrad, T, Inputs>;
  const program& p = *cpu::program_of_formula<formula::adagrad, T, Inputs>();
  const compiled_row* const found = find_fused(p);
  REQUIRE(found);
  REQUIRE((found->run == &kernel::run));
  const cpu::interpreter steps(p, true);
  const std::int64_t room = std::max<std::int64_t>({n, found->span, steps.span()});
  std::vector<T> operands[4];
  const void* in[4];
  std::uintptr_t masks[4];
  for (int k = 0; k < 4; ++k) {
    operands[k] = values<T>(room, static_cast<std::uint64_t>(k));
    if (k == 1)
      for (T& e : operands[k]) e = std::abs(e);
    masks[k] = k == repeated || k >= Inputs ? 0 : ~std::uintptr_t{0};
    if (!masks[k]) operands[k].assign(operands[k].size(), operands[k].back());
    in[k] = operands[k].data();
  }
  auto run = [&](bool compiled, bool in_place) {
    std::vector<T> to[] = {operands[0], operands[1]};
    const void* from[] = {in[0], in[1], in[2], in[3]};
    if (in_place) from[0] = to[0].data(), from[1] = to[1].data();
    void* out[] = {to[0].data(), to[1].data()};
    if (compiled)
      found->run({from, masks, out, n});
    else
      steps.run({from, masks, out, n});
    return std::array{filled<T>(dims{room}, to[0]), filled<T>(dims{room}, to[1])};
  };
  const auto expected = run(false, true);
  for (const bool in_place : {false, true}) {
    const auto got = run(true, in_place);
    CHECK(identical(got[0], expected[0]));
    CHECK(identical(got[1], expected[1]));
  }
  if (n > 1) CHECK_FALSE(identical(expected[0], filled<T>(dims{room}, operands[0])));
}

}  // namespace

TEST_CASE_TEMPLATE("a compiled formula has the interpreter's bits, whatever is repeated", T, float,
                   double) {
  for (const std::int64_t n : {1, 2, 7, 8, 16, 17, 31, 64, 1000, 2500})
    for (const int repeated : {-1, 2, 3}) {
      CAPTURE(n);
      CAPTURE(repeated);
      compare<T, 3>(n, repeated);
      compare<T, 4>(n, repeated);
    }
}

TEST_CASE_FIXTURE(own_graph,
                  "an optimizer's update is its compiled formula, however it is written") {
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
  const operation trained = adagrad(0.1).apply_gradients({{any_tensor(w).handle().node, g}});
  CHECK(is_compiled(any_tensor(output{trained.handle()->controls()[0], 0})));
}
