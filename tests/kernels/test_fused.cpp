// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/cpu/interpreter.hpp>
#include <deft/kernels/cpu/kernel_hook.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/catalog.hpp>

#include "arrays.hpp"
#include "expressions.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

// Hendrycks' gelu, by tanh.
using written_gelu = call<
    op::mul, call<op::mul, K, F>,
    call<op::add, K,
         call<op::tanh,
              call<op::mul, K,
                   call<op::add, F, call<op::mul, call<op::mul, call<op::mul, K, F>, F>, F>>>>>>;
// Masks, bytes and elements of every width in one expression.
using mixed = call<
    op::where,
    call<op::logical_or, call<op::less, in<double>, in<double>>,
         call<op::logical_and, in<bool>, call<op::equal, in<std::int32_t>, lit<std::int32_t>>>>,
    call<op::cast_to<double>, in<std::uint8_t>>, call<op::exp, in<double>>>;
using wide =
    call<op::add, call<op::cast_to<float>, in<double>>, call<op::cast_to<float>, in<std::int64_t>>>;
using answer = call<op::not_equal, call<op::less_equal, F, K>, in<bool>>;

template <class X>
std::vector<dtype> inputs_of() {
  return deft::detail::program_of<X>()->inputs;
}

/// A fused node of X's program.
template <class X>
prepared node_for(const integers& literals, const std::vector<any_array>& inputs) {
  return prepared(record_of<op::fused>, {deft::detail::program_of<X>(), literals},
                  types_of(inputs));
}

any_array some(dtype t, const dims& shape, std::uint64_t seed) {
  return visit_dtype(t, [&]<class T>() { return filled<T>(shape, values<T>(3000, seed)); });
}

/// A program without a compiled kernel: X's, with the result negated twice (logical_not or neg), so
/// that the program itself runs.
program_ref unknown(const program& p) {
  auto q = std::make_shared<program>(p);
  const op_def& op = p.result() == dtype::boolean ? record_of<op::logical_not> : record_of<op::neg>;
  for (int i = 0; i < 2; ++i) {
    instruction c;
    c.op = &op;
    c.type = p.result();
    c.count = 1;
    c.args[0] = static_cast<std::uint16_t>(q->values() - 1);
    q->code.push_back(c);
  }
  q->seal();
  return q;
}

template <class X>
void compare(const integers& literals) {
  cpu_kernels::use<X>();
  const program& p = *deft::detail::program_of<X>();
  REQUIRE(find_fused(p));
  const program_ref other = unknown(p);
  REQUIRE_FALSE(find_fused(*other));
  const std::vector<std::vector<dims>> cases = {{{1}},
                                                {{7}},
                                                {{64}},
                                                {{1000}},
                                                {{}, {33}},
                                                {{5, 1}, {129}},
                                                {{4, 70}, {70}, {4, 1}, {}},
                                                {{3, 1, 9}, {2, 1}, {1}},
                                                {{2500}}};
  for (const auto& shapes : cases) {
    std::vector<any_array> inputs;
    std::uint64_t seed = 1;
    for (dtype t : p.inputs) {
      inputs.push_back(some(t, shapes[inputs.size() % shapes.size()], seed++));
    }
    auto compiled = node_for<X>(literals, inputs);
    prepared portable(record_of<op::fused>, {other, literals}, types_of(inputs));
    const any_array once = compiled.run(inputs)[0], stepwise = portable.run(inputs)[0];
    CHECK(difference(once, stepwise) == "");
    if (literals.empty()) continue;
    // The same with literals that are fed.
    const integers unused(literals.size());
    for (std::size_t i = 0; i < literals.size(); ++i)
      inputs.push_back(literal_value(p.immediates[i], literals[i]));
    CHECK(identical(node_for<X>(unused, inputs).run(inputs)[0], once));
    prepared late(record_of<op::fused>, {other, unused}, types_of(inputs));
    CHECK(identical(late.run(inputs)[0], stepwise));
  }
}

/// Op inside another operation, which has a separate loop, not the primitive's.
template <class Op, class... A>
void compare_nested() {
  INFO(Op::name);
  using X = call<Op, A...>;
  using R = typename X::value_type;
  if constexpr (std::is_same_v<R, bool>)
    compare<call<op::logical_not, X>>({});
  else
    compare<call<op::add, X, in<R>>>({});
}
template <class Op, class T>
void compare_operation() {
  if constexpr (!accepts(Op::typing_rule, dtype_of<T>)) {
    return;
  } else if constexpr (divides_integers<Op, T>) {
    return;  // the values contain zeros
  } else if constexpr (Op::arity == 1) {
    compare_nested<Op, in<T>>();
  } else if constexpr (Op::arity == 2) {
    compare_nested<Op, in<T>, in<T>>();
  } else {
    compare_nested<Op, in<bool>, in<T>, in<T>>();
  }
}

}  // namespace

// What is compiled does not depend on where X's own namespace is.
static_assert(std::is_same_v<kernels_for<placeholder<float, 3>>, cpu_kernels>);
static_assert(std::is_same_v<kernels_for<std::tuple<float>>, cpu_kernels>);

TEST_CASE("every elementwise operation gives the same in a compiled expression and its program") {
  op::catalog::each([]<class Op>() {
    if constexpr (requires { Op::typing_rule; }) {
      compare_operation<Op, float>();
      compare_operation<Op, double>();
      compare_operation<Op, std::int32_t>();
      if constexpr (Op::typing_rule == typing::logical) compare_operation<Op, bool>();
    }
  });
}

TEST_CASE("a compiled integer division by zero is an error too") {
  using I = in<std::int32_t>;
  using X = call<op::add, call<op::div, I, I>, I>;
  cpu_kernels::use<X>();
  for (std::int64_t at : {0, 15, 63, 64, 998}) {
    any_array a = moderate<std::int32_t>({999}), b = filled<std::int32_t>({999}, {7});
    b.mutable_data<std::int32_t>()[at] = 0;
    auto node = node_for<X>({}, {a, b, a});
    CHECK(error_of([&] {
            node.run({a, b, a});
          }) == "invalid_argument: [div] integer division by zero");
  }
}

TEST_CASE("a compiled expression and its program give the same") {
  compare<call<op::add, call<op::mod, in<std::int32_t>, lit<std::int32_t>>, in<std::int32_t>>>(
      {-7});
  compare<chain>({to_immediate(2.f)});
  compare<written_gelu>(
      {to_immediate(0.5f), to_immediate(1.f), to_immediate(0.79788456f), to_immediate(0.044715f)});
}

TEST_CASE("one kernel takes elements of every width and masks") {
  compare<mixed>({to_immediate<std::int32_t>(1)});
  compare<wide>({});
  compare<answer>({to_immediate(0.5f)});
}

TEST_CASE("expressions register before main under their program's signature") {
  auto p = deft::detail::program_of<chain>();
  CHECK(find_fused(*p) == find_fused(program(*p)));
  program none;
  none.signature = "t0=add(i0:float,i1:float):float but other";
  CHECK(find_fused(none) == nullptr);
}

TEST_CASE("pairs of operations of a program are one step") {
  CHECK(cpu::interpreter(*deft::detail::program_of<written_gelu>()).steps() == 5);
  CHECK(cpu::interpreter(*deft::detail::program_of<chain>()).steps() <= 4);
}

TEST_CASE("a piece that was compiled as an expression is one step") {
  // gelu of separate inputs, and then gelu of that result.
  const program& alone = *deft::detail::program_of<written_gelu>();
  program_builder b;
  using value = program_builder::value;
  std::vector<value> inputs;
  for (auto t : alone.inputs) inputs.push_back(b.input(t));
  auto append = [&](std::vector<value> values) {
    for (auto t : alone.immediates) values.push_back(b.immediate(t));
    const std::size_t first = b.operations();
    for (const auto& c : alone.code) {
      std::array<value, 3> args;
      for (std::size_t a = 0; a < c.count; ++a) args[a] = values[c.args[a]];
      values.push_back(b.apply(*c.op, c.type, std::span(args).first(c.count)));
    }
    b.end_piece(first);
    return values.back();
  };
  const value once = append(inputs);
  append(std::vector<value>(inputs.size(), once));
  const program_ref twice = b.finish();
  validate(*twice);
  CHECK(cpu::interpreter(*twice).steps() == 2);
  program bare = *twice;
  bare.pieces.clear();
  CHECK(cpu::interpreter(bare).steps() > 4);
  // A piece is ignored if other instructions use its inner values.
  program open = *twice;
  open.code.back().args[0] = static_cast<std::uint16_t>(open.values() - 3);
  open.code[open.code.size() - 2].args[0] =
      static_cast<std::uint16_t>(open.inputs.size() + open.immediates.size());
  CHECK(cpu::interpreter(open).steps() > 2);
  const integers one{to_immediate(0.5f), to_immediate(1.f), to_immediate(0.79788456f),
                     to_immediate(0.044715f)};
  integers literals = one;
  literals.insert(literals.end(), one.begin(), one.end());
  for (std::int64_t n : {1, 300, 3000, 2'000'000}) {
    const any_array x = moderate<float>({n});
    const std::vector<any_array> in(alone.inputs.size(), x);
    prepared joined(record_of<op::fused>, encode(op::fused{twice, literals}), types_of(in));
    prepared single(record_of<op::fused>,
                    encode(op::fused{deft::detail::program_of<written_gelu>(), one}), types_of(in));
    const any_array y = single.run(in)[0];
    CHECK(identical(joined.run(in)[0],
                    single.run(std::vector<any_array>(alone.inputs.size(), y))[0]));
  }
}

TEST_CASE("a program keeps values that are used again, in any order") {
  // t0 = a + b, t1 = t0 * t0, t2 = a - t1, t3 = t2 * t0, t4 = max(t3, t1), t5 = t4 - t0
  auto p = std::make_shared<program>();
  p->inputs = {dtype::float32, dtype::float32};
  auto put = [&](const op_def& op, int a, int b) {
    instruction c;
    c.op = &op;
    c.type = dtype::float32;
    c.count = 2;
    c.args[0] = static_cast<std::uint16_t>(a);
    c.args[1] = static_cast<std::uint16_t>(b);
    p->code.push_back(c);
  };
  put(record_of<op::add>, 0, 1);
  put(record_of<op::mul>, 2, 2);
  put(record_of<op::sub>, 0, 3);
  put(record_of<op::mul>, 4, 2);
  put(record_of<op::maximum>, 5, 3);
  put(record_of<op::sub>, 6, 2);
  p->seal();
  for (std::int64_t n : {1, 5, 100, 3000}) {
    any_array a = moderate<float>({n}, 1), b = moderate<float>({n}, 2);
    prepared k(record_of<op::fused>, {program_ref(p), integers()}, types_of({a, b}));
    any_array r = k.run({a, b})[0], expected(dtype::float32, {n});
    for (std::int64_t i = 0; i < n; ++i) {
      const float x = a.data<float>()[i], t0 = x + b.data<float>()[i], t1 = t0 * t0;
      expected.mutable_data<float>()[i] = std::max((x - t1) * t0, t1) - t0;
    }
    // The compiler may fuse products and sums in `expected`, and the differences cancel.
    CHECK(difference(r, expected, 16, 1) == "");
  }
}

TEST_CASE("an operation without a kernel is unimplemented, and the error names it") {
  static const op_def strange = [] {
    op_def d;
    d.name = "strange";
    d.traits = op_traits::elementwise;
    return d;
  }();
  auto p = std::make_shared<program>();
  p->inputs = {dtype::float32};
  instruction c;
  c.op = &strange;
  c.type = dtype::float32;
  c.count = 1;
  p->code.push_back(c);
  p->seal();
  CHECK(error_of([&] { cpu::interpreter i(*p); }) ==
        "unimplemented: [strange] has no kernel on the CPU for float");
}

TEST_CASE("fused nodes have the same bits for any number of threads") {
  const integers literals{to_immediate(0.5f), to_immediate(1.f), to_immediate(0.79788456f),
                          to_immediate(0.044715f)};
  for (const dims& shape : {dims{1'000'003}, dims{700, 801}}) {
    any_array x = moderate<float>(shape), row = moderate<float>({shape.back()}, 2);
    std::vector<any_array> inputs(5, x);
    inputs[3] = row;
    const program_ref other = unknown(*deft::detail::program_of<written_gelu>());
    std::vector<any_array> results;
    for (int threads : {1, 2, 5}) {
      set_intra_op_threads(threads);
      results.push_back(node_for<written_gelu>(literals, inputs).run(inputs)[0]);
      results.push_back(
          prepared(record_of<op::fused>, {other, literals}, types_of(inputs)).run(inputs)[0]);
    }
    set_intra_op_threads(0);
    CHECK(identical(results[0], results[2]));
    CHECK(identical(results[0], results[4]));
    CHECK(identical(results[1], results[3]));
    CHECK(identical(results[1], results[5]));
  }
}
