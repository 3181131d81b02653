// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/gpu/compilations.hpp>
#include <deft/kernels/gpu/cuda_codegen.hpp>
#include <deft/kernels/spec/expression_eval.hpp>
#include <set>

#include "../expressions.hpp"
#include "nvrtc.hpp"
#include "own_operations.hpp"
#include "testing.hpp"
// Must come after doctest.
#include "random_program.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

/// The outputs, or the error.
template <class F>
std::string failure_of(std::vector<any_array>& outputs, F&& run) {
  try {
    outputs = run();
  } catch (const error& e) {
    return e.message();
  }
  return {};
}

void compare(const host_result& got, const std::vector<any_array>& expected,
             const std::string& failure) {
  CHECK((got.record.taken != 0) == !failure.empty());
  if (got.record.taken) CHECK(got.record.item == 5);
  if (!failure.empty()) return;
  REQUIRE(got.outputs.size() == expected.size());
  for (std::size_t o = 0; o < expected.size(); ++o)
    CHECK(other_bits(got.outputs[o], expected[o]) == "");
}

}  // namespace

TEST_CASE("operations that compute an element from elements have a body, and no others") {
  for (const op_def* o : catalog_ops()) {
    CAPTURE(o->name);
    for (const dtype t : {dtype::float32, dtype::int64})
      if (!o->is(op_traits::elementwise)) CHECK(gpu::body_of(*o, t).empty());
  }
  CHECK_FALSE(gpu::body_of(record_of<op::mul>, dtype::float32).empty());
  CHECK_FALSE(gpu::body_of(record_of<op::cast>, dtype::int64).empty());
  // Of the program's own, that another file compiles.
  CHECK_FALSE(gpu::body_of(record_of<leak>, dtype::float32).empty());
}

TEST_CASE("a program with an operation of the program's own has source") {
  if (!has_host_compiler()) return;
  program_builder b;
  using value = program_builder::value;
  const value x = b.input(dtype::float32), y = b.input(dtype::float32);
  const value operands[] = {x, y, b.immediate(dtype::float32)};
  const value leaked = b.apply(record_of<leak>, dtype::float32, operands);
  const value factors[] = {leaked, y};
  b.apply(record_of<op::mul>, dtype::float32, factors);
  const program_ref p = b.finish();
  const dims shape{9, 13};
  const std::vector<any_array> inputs{moderate<float>(shape, 1), moderate<float>(shape, 2)};
  const integers literals{to_immediate(0.3f)};
  std::vector<host_program> all;
  all.emplace_back(p, literals, inputs, std::vector<tensor_type>{{shape, dtype::float32}});
  CHECK(identical(host_programs(all).run(all[0], 0).outputs[0],
                  run_all(record_of<op::fused>, {p, literals}, inputs)[0]));
}

TEST_CASE("generated source of random programs gives the processor's bits") {
  if (!has_host_compiler()) return;
  std::vector<host_program> all;
  for (std::uint64_t seed = 0; seed < 160; ++seed)
    all.push_back(random_program(seed).elements(seed % 3 == 0, seed % 3 == 1));
  const host_programs library(all);
  int failed = 0, groups = 0, broadcast = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& p = all[i];
    INFO("program ", i, ": ", p.program->signature);
    for (const auto& v : p.inputs) broadcast += !(v.shape() == p.out[0].shape);
    std::vector<any_array> expected;
    const std::string failure = failure_of(expected, [&] {
      return run_all(record_of<op::fused>, {p.program, p.literals}, p.inputs);
    });
    failed += !failure.empty();
    const auto got = library.run(p, i);
    groups += got.kernel == "groups_of_4";
    compare(got, expected, failure);
    const auto shifted = library.run(p, i, 1);
    CHECK(shifted.kernel == "single");
    compare(shifted, expected, failure);
  }
  CHECK(failed > 5);
  CHECK(failed < 60);
  CHECK(groups > 60);
  CHECK(broadcast > 80);
}

TEST_CASE("generated source of regions of rows gives the bits of over_rows") {
  if (!has_host_compiler()) return;
  struct {
    std::int64_t rows, n;
  } const sizes[] = {{5, 1}, {3, 2}, {9, 7}, {2, 32}, {3, 33}, {1, 129}, {2, 2048}, {2, 2500}};
  std::vector<host_program> all;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const auto s = sizes[seed % std::size(sizes)];
    all.push_back(random_program(1000 + seed).rows(s.rows, s.n));
  }
  const host_programs library(all);
  int failed = 0, deep = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& p = all[i];
    INFO("program ", i, ": ", p.program->signature, " of ", p.inputs[0].shape());
    std::vector<any_array> expected;
    const std::string failure = failure_of(expected, [&] {
      return run_on_gpu(record_of<op::fused>, {p.program, p.literals}, p.inputs);
    });
    failed += !failure.empty();
    for (const auto& c : p.program->code) deep += c.is_fold();
    compare(library.run(p, i), expected, failure);
    compare(library.run(p, i, 1), expected, failure);
  }
  CHECK(failed < 60);
  CHECK(deep > 80);
}

TEST_CASE("generated source of regions with folds of columns gives the bits of over_rows") {
  if (!has_host_compiler()) return;
  struct {
    std::int64_t rows, n;
  } const sizes[] = {{2, 5}, {1, 40}, {7, 33}, {32, 16}, {33, 3}, {129, 2}, {2048, 3}, {2500, 17}};
  std::vector<host_program> all;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto s = sizes[seed % std::size(sizes)];
    auto p = random_program(9000 + seed).columns(s.rows, s.n);
    if (std::ranges::any_of(p.program->code, &instruction::is_fold)) all.push_back(std::move(p));
  }
  CHECK(all.size() > 60);
  const host_programs library(all);
  int failed = 0, is_long = 0, with_elements = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& p = all[i];
    INFO("program ", i, ": ", p.program->signature, " of ", p.inputs[0].shape());
    for (const auto& o : p.program->outputs) with_elements += o.where == extent_class::element;
    std::vector<any_array> expected;
    const std::string failure = failure_of(expected, [&] {
      return run_on_gpu(record_of<op::fused>, {p.program, p.literals}, p.inputs);
    });
    failed += !failure.empty();
    const auto got = library.run(p, i);
    is_long += got.kernel == "long_columns";
    compare(got, expected, failure);
    compare(library.run(p, i, 1), expected, failure);
  }
  CHECK(failed < 50);
  CHECK(is_long > 5);
  CHECK(with_elements > 20);
}

TEST_CASE("generated source of regions folded as a whole gives the bits of over_rows") {
  if (!has_host_compiler()) return;
  const dims shapes[] = {{7}, {33}, {40, 50}, {3, 1, 700}, {16384}, {5, 41, 80}, {130, 257}};
  std::vector<host_program> all;
  for (std::uint64_t seed = 0; seed < 70; ++seed) {
    auto p = random_program(5000 + seed).whole(shapes[seed % std::size(shapes)]);
    if (p.out.back().shape.rank() == 0 || p.out[0].shape.rank() == 0) all.push_back(std::move(p));
  }
  CHECK(all.size() > 40);
  const host_programs library(all);
  int failed = 0, in_parts = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& p = all[i];
    INFO("program ", i, ": ", p.program->signature, " of ", p.inputs[0].shape());
    std::vector<any_array> expected;
    const std::string failure = failure_of(expected, [&] {
      return run_on_gpu(record_of<op::fused>, {p.program, p.literals}, p.inputs);
    });
    failed += !failure.empty();
    in_parts += p.compiled->scratch() != 0;
    compare(library.run(p, i), expected, failure);
  }
  CHECK(failed < 30);
  CHECK(in_parts > 5);
}

TEST_CASE("a sum of negative zeros is a negative zero") {
  if (!has_host_compiler()) return;
  std::vector<host_program> all;
  for (auto leaves : {extent_class::row, extent_class::whole}) {
    program_builder b;
    const auto x = b.input(dtype::float32);
    b.row_axes(leaves == extent_class::row);
    b.output(b.fold(record_of<op::sum>, dtype::float32, x, leaves), leaves, false);
    const dims shape{3, 5};
    all.emplace_back(
        b.finish(), integers{},
        std::vector<any_array>{filled<float>(shape, std::vector<float>{-0.f})},
        std::vector<tensor_type>{{leaves == extent_class::row ? dims{3} : dims{}, dtype::float32}});
  }
  const host_programs library(all);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(std::signbit(library.run(all[i], i).outputs[0].data<float>()[0]));
}

TEST_CASE("results of a region of rows may overwrite operands") {
  if (!has_host_compiler()) return;
  // A softmax without exp: x - max(x), and x / sum(|x|).
  program_builder b;
  const auto x = b.input(dtype::float32), w = b.input(dtype::float32);
  using value = program_builder::value;
  auto apply = [&](const op_def& op, std::initializer_list<value> args) {
    return b.apply(op, dtype::float32, std::span(args.begin(), args.size()));
  };
  b.row_axes(1);
  const auto z = apply(record_of<op::mul>, {x, w});
  const auto most = b.fold(record_of<op::max>, dtype::float32, z, extent_class::row);
  const auto less = apply(record_of<op::sub>, {z, most});
  const auto total = b.fold(record_of<op::sum>, dtype::float32, less, extent_class::row);
  const auto share = apply(record_of<op::div>, {less, total});
  b.output(z, extent_class::element, false);
  b.output(share, extent_class::element, false);
  const program_ref p = b.finish();
  const dims shape{3, 40};
  const std::vector<any_array> inputs{moderate<float>(shape, 1), moderate<float>(shape, 2)};
  std::vector<host_program> all;
  all.emplace_back(p, integers{}, inputs, std::vector<tensor_type>(2, {shape, dtype::float32}));
  const host_programs library(all);
  const auto apart = library.run(all[0], 0), in_place = library.run(all[0], 0, 0, true);
  for (int o = 0; o < 2; ++o) CHECK(identical(apart.outputs[o], in_place.outputs[o]));
}

TEST_CASE("an update changes its variables in place, and nothing once its run has failed") {
  if (!has_host_compiler()) return;
  // Adagrad: a += g * g, v -= rate * g / sqrt(a).
  program_builder b;
  const auto v = b.input(dtype::float32), a = b.input(dtype::float32), g = b.input(dtype::float32);
  const auto rate = b.immediate(dtype::float32);
  using value = program_builder::value;
  auto apply = [&](const op_def& op, std::initializer_list<value> args) {
    return b.apply(op, dtype::float32, std::span(args.begin(), args.size()));
  };
  const auto more = apply(record_of<op::add>, {a, apply(record_of<op::square>, {g})});
  const auto step = apply(record_of<op::div>, {apply(record_of<op::mul>, {rate, g}),
                                               apply(record_of<op::sqrt>, {more})});
  b.output(apply(record_of<op::sub>, {v, step}), extent_class::element, false);
  b.output(more, extent_class::element, false);
  const program_ref p = b.finish();
  const dims shape{13, 7};
  const integers literals{to_immediate(0.1f)};
  const std::vector<any_array> inputs{moderate<float>(shape, 1),
                                      filled<float>(shape, std::vector<float>{0.1f, 2}),
                                      moderate<float>(dims{7}, 3)};
  std::vector<host_program> all;
  all.emplace_back(p, literals, inputs, std::vector<tensor_type>(2, {shape, dtype::float32}),
                   gpu::source_options{.update = true});
  const host_programs library(all);
  const auto expected = run_all(record_of<op::fused>, {p, literals}, inputs);
  for (std::size_t shift : {0, 1}) {
    const auto got = library.run(all[0], 0, shift, true);
    for (std::size_t o = 0; o < 2; ++o) {
      CHECK(identical(got.outputs[o], expected[o]));
      const auto refused = library.run(all[0], 0, shift, true, true);
      CHECK(identical(refused.outputs[o], inputs[o]));
    }
  }
}

TEST_CASE("an update that fails in one element changes no other element") {
  if (!has_host_compiler()) return;
  program_builder b;
  const auto v = b.input(dtype::int32), x = b.input(dtype::int32);
  const program_builder::value args[] = {v, x};
  b.apply(record_of<op::div>, dtype::int32, args);
  const program_ref p = b.finish();
  const dims shape{300};
  const any_array before = moderate<std::int32_t>(shape, 1);
  std::vector<host_program> all;
  for (std::int32_t last : {0, 7}) {
    any_array by = filled<std::int32_t>(shape, {3});
    by.mutable_data<std::int32_t>()[299] = last;
    all.emplace_back(p, integers{}, std::vector<any_array>{before, by},
                     std::vector<tensor_type>{{shape, dtype::int32}},
                     gpu::source_options{.update = true});
  }
  const host_programs library(all);
  for (std::size_t shift : {0, 1}) {
    const auto refused = library.run(all[0], 0, shift, true);
    CHECK(refused.record.taken != 0);
    CHECK(identical(refused.outputs[0], before));
    const auto changed = library.run(all[1], 1, shift, true);
    CHECK(changed.record.taken == 0);
    CHECK(identical(changed.outputs[0],
                    run_all(record_of<op::fused>, {p, integers{}}, all[1].inputs)[0]));
  }
}

TEST_CASE("an operation without a kernel is not supported") {
  auto supported = [](const program& p, const std::vector<tensor_type>& in,
                      const std::vector<tensor_type>& out, gpu::source_options options = {}) {
    gpu::compiled_program c(p, std::vector<std::int64_t>(p.immediates.size()), options);
    c.prepare(in, out);
    return c.supported();
  };
  using quotient = call<op::div, in<std::int32_t>, in<std::int32_t>>;
  const program& div = *deft::detail::program_of<quotient>();
  const std::vector<tensor_type> ints(2, {dims{5}, dtype::int32});
  CHECK(supported(div, ints, {ints[0]}));
  const std::vector<tensor_type> none(2, {dims{0}, dtype::int32});
  CHECK_FALSE(supported(div, none, {none[0]}));

  op_def own = record_of<op::neg>;
  own.name = "own";
  program_builder b;
  const auto x = b.input(dtype::float32);
  b.apply(own, dtype::float32, {&x, 1});
  const std::vector<tensor_type> floats(1, {dims{5}, dtype::float32});
  CHECK_FALSE(supported(*b.finish(), floats, floats));

  program_builder sums;
  const auto y = sums.input(dtype::float32);
  sums.row_axes(1);
  const auto z = sums.fold(record_of<op::sum>, dtype::float32, y, extent_class::row);
  sums.output(z, extent_class::row, false);
  const program_ref rows = sums.finish();
  auto of = [&](std::int64_t count, std::int64_t n) {
    return supported(*rows, {{dims{count, n}, dtype::float32}}, {{dims{count}, dtype::float32}});
  };
  CHECK(of(3, 10));
  CHECK_FALSE(of(3, 0));
  CHECK_FALSE(of(3, 100000));  // folded in parts
  CHECK(of(300, 100000));

  // With an extent of 1 an operand may have another class than the region expects.
  program_builder scaled;
  scaled.row_axes(1);
  const auto u = scaled.input(dtype::float32), r = scaled.input(dtype::float32);
  scaled.output(scaled.fold(record_of<op::sum>, dtype::float32, u, extent_class::row),
                extent_class::row, false);
  scaled.output(scaled.apply(record_of<op::neg>, dtype::float32, {&r, 1}), extent_class::row, true);
  const program_ref region = scaled.finish();
  auto of_rows = [&](std::int64_t count) {
    return supported(*region, {{dims{count, 5}, dtype::float32}, {dims{count, 1}, dtype::float32}},
                     {{dims{count}, dtype::float32}, {dims{count, 1}, dtype::float32}});
  };
  CHECK(of_rows(2));
  CHECK_FALSE(of_rows(1));

  // More operands than a launch can take.
  program_builder many;
  std::vector<program_builder::value> in;
  std::vector<tensor_type> types;
  for (int i = 0; i < 64; ++i) in.push_back(many.input(dtype::float32));
  auto sum = in[0];
  for (int i = 1; i < 64; ++i) {
    const program_builder::value args[] = {sum, in[static_cast<std::size_t>(i)]};
    sum = many.apply(record_of<op::add>, dtype::float32, args);
  }
  const program_ref wide = many.finish();
  auto of_rank = [&](const dims& shape) {
    std::vector<tensor_type> all(64, {shape, dtype::float32});
    all[1].shape = dims{};
    for (int d = 0; d < shape.rank(); ++d) all[1].shape.push_back(d % 2 ? 1 : shape[d]);
    return supported(*wide, all, {{shape, dtype::float32}});
  };
  CHECK(of_rank({2, 2}));
  CHECK_FALSE(of_rank({2, 2, 2, 2, 2, 2, 2, 2}));
}

TEST_CASE("random programs on CUDA give the bits of simulated GPUs" *
          doctest::test_suite(needs_cuda)) {
  if (skipped_without_nvrtc()) return;
  std::set<std::string> sources;
  for (std::int64_t k = 0; k < 100; ++k) {
    const auto seed = static_cast<std::uint64_t>(k);
    const host_program all[] = {random_program(seed).elements(seed % 2 == 0, false),
                                random_program(1000 + seed).rows(3, 1 + 25 * k),
                                random_program(5000 + seed).whole({13, 1 + 10 * k})};
    for (const auto& p : all) {
      INFO("program ", p.program->signature, " of ", p.inputs[0].shape());
      // Asks for the code, which no run waits for.
      const prepared_on_gpu asked(record_of<op::fused>, {p.program, p.literals},
                                  types_of(p.inputs));
      if (p.compiled->supported()) {
        const auto code = gpu::compilations().ask(p.compiled->source(), cuda_architecture());
        code->wait();
        CHECK(code->failure() == nullptr);
        sources.insert(p.compiled->source());
      }
      CHECK(difference_from_simulated(record_of<op::fused>, {p.program, p.literals}, p.inputs) ==
            "");
    }
  }
  CHECK(sources.size() > 250);
  // It rises with each source whose code is loaded: none was run an instruction at a time.
  CHECK(test_gpu().code_version() >= sources.size());
}
