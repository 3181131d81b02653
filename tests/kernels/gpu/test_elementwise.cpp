// SPDX-License-Identifier: Apache-2.0
#include <deft/op/catalog.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/sum.hpp>

#include "../arrays.hpp"
#include "on_gpu.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

/// Operands of up to three shapes that broadcast, with awkward extents.
const std::vector<std::array<dims, 3>> shapes = {
    {{{1}, {1}, {1}}},          {{{}, {}, {}}},
    {{{7}, {7}, {7}}},          {{{64}, {64}, {64}}},
    {{{1001}, {1001}, {1001}}}, {{{0}, {0}, {0}}},
    {{{5, 33}, {33}, {}}},      {{{5, 1}, {32}, {5, 32}}},
    {{{}, {129}, {1}}},         {{{2, 3, 4, 5}, {3, 1, 5}, {2, 1, 1, 1}}},
    {{{3, 8}, {3, 1}, {8}}},    {{{2, 1, 2, 1, 2, 1, 2, 4}, {1, 2, 1, 2, 1, 2, 1, 4}, {4}}},
    {{{4, 0}, {1}, {4, 1}}}};

/// Units in the last place by which libm and packs may differ.
template <class Op>
constexpr double rounding = [] {
  // Its terms cancel where labels are not from 0 to 1.
  if (Op::name == "sigmoid_cross_entropy") return 2000;
  if constexpr (requires { Op::typing_rule; })
    return Op::typing_rule == typing::floating && Op::name != "sqrt" ? 8 : 0;
  else
    return 0;
}();

template <class Op, class T>
std::vector<any_array> operands(const std::array<dims, 3>& of) {
  std::vector<any_array> in;
  for (int k = 0; k < Op::arity; ++k) {
    const auto seed = static_cast<std::uint64_t>(k + 1);
    const dims& d = of[static_cast<std::size_t>(k)];
    if (k == 0 && Op::arity == 3)
      in.push_back(filled<bool>(d, values<bool>(d.elements(), seed)));
    else
      in.push_back(filled<T>(d, values<T>(std::max<std::int64_t>(d.elements(), 1), seed)));
  }
  if constexpr (divides_integers<Op, T>)
    for (std::int64_t i = 0; i < in[1].elements(); ++i)
      if (T& v = in[1].mutable_data<T>()[i]; v == 0) v = 3;
  return in;
}

template <class Op, class T>
void check_operation() {
  for (const auto& of : shapes) {
    const auto in = operands<Op, T>(of);
    INFO(str(Op::name, " of ", dtype_of<T>, " ", join(in, " ", [](auto& a) { return a.shape(); })));
    const any_array expected = run_all(record_of<Op>, {}, in)[0];
    for (std::size_t shift : {0, 1})
      CHECK(difference(run_on_gpu(record_of<Op>, {}, in, {.shift = shift})[0], expected,
                       rounding<Op>) == "");
  }
}

}  // namespace

TEST_CASE("every elementwise operation gives the processor's results on GPUs") {
  op::catalog::each([]<class Op>() {
    if constexpr (requires { Op::typing_rule; })
      each_dtype([]<class T>() {
        if constexpr (accepts(Op::typing_rule, dtype_of<T>)) check_operation<Op, T>();
      });
  });
}

TEST_CASE("casts on GPUs saturate and wrap as on the processor") {
  each_dtype([]<class From>() {
    const any_array x = filled<From>({50}, values<From>(50));
    each_dtype([&]<class To>() {
      const op::cast o{dtype_of<To>};
      INFO(str(dtype_of<From>, " to ", dtype_of<To>));
      CHECK(difference(run_op_on_gpu(o, {x}), run_op(o, {x})) == "");
    });
  });
}

TEST_CASE_TEMPLATE("an integer division by zero on GPUs fails as on the processor", T, std::int32_t,
                   std::int64_t, std::uint8_t, std::int8_t) {
  any_array a = moderate<T>({100}, 1), b = moderate<T>({100}, 2);
  for (int i = 0; i < 100; ++i) b.mutable_data<T>()[i] = static_cast<T>(i + 1);
  b.mutable_data<T>()[77] = 0;
  auto message_of = [](auto f) {
    try {
      f();
    } catch (const error& e) {
      return str(e.code(), " ", e.message());
    }
    return std::string();
  };
  CHECK(message_of([&] {
          run_op_on_gpu(op::div(), {a, b});
        }) == "invalid_argument [div] integer division by zero");
  CHECK(message_of([&] {
          run_op_on_gpu(op::mod(), {a, b});
        }) == message_of([&] {
          run_op(op::mod(), {a, b});
        }));
  // The device stays usable.
  CHECK(difference(run_op_on_gpu(op::add(), {a, b}), run_op(op::add(), {a, b})) == "");
}

TEST_CASE("a program of many literals and shapes runs one instruction at a time") {
  program_builder b;
  auto x = b.input(dtype::float32), y = b.input(dtype::float32);
  auto apply = [&](const op_def& op, auto... args) {
    const program_builder::value a[] = {args...};
    return b.apply(op, dtype::float32, a);
  };
  auto sum = apply(record_of<op::add>, x, y);
  integers literals;
  for (int i = 0; i < 40; ++i) {
    sum = apply(i % 2 ? record_of<op::add> : record_of<op::mul>, sum, b.immediate(dtype::float32));
    literals.push_back(to_immediate(static_cast<float>(i % 7) * 0.25f + 0.5f));
  }
  const program_ref p = b.finish();
  const any_array in[] = {moderate<float>({6, 5}, 1), moderate<float>({5}, 2)};
  const std::vector<any_array> inputs(in, in + 2);
  CHECK(difference(run_on_gpu(record_of<op::fused>, {p, literals}, inputs)[0],
                   run_all(record_of<op::fused>, {p, literals}, inputs)[0]) == "");
}

TEST_CASE("the scratch memory of a fold does not overlap values that are still needed") {
  program_builder b;
  auto x = b.input(dtype::int64), y = b.input(dtype::int64);
  auto apply = [&](const op_def& op, auto... args) {
    const program_builder::value a[] = {args...};
    return b.apply(op, dtype::int64, a);
  };
  const auto less = apply(record_of<op::sub>, x, y);
  // It is folded in parts, whose sums are kept until they are added.
  const auto total = b.fold(record_of<op::sum>, dtype::int64, less, extent_class::whole);
  b.output(apply(record_of<op::mul>, less, y), extent_class::element, false);
  b.output(total, extent_class::whole, false);
  const program_ref p = b.finish();
  const std::vector<any_array> inputs{moderate<std::int64_t>({40'000}, 1),
                                      moderate<std::int64_t>({40'000}, 2)};
  const auto on_gpu = run_on_gpu(record_of<op::fused>, {p, integers()}, inputs);
  const auto on_cpu = run_all(record_of<op::fused>, {p, integers()}, inputs);
  for (std::size_t o = 0; o < 2; ++o) CHECK(difference(on_gpu[o], on_cpu[o]) == "");
}
