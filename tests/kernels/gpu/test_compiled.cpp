// SPDX-License-Identifier: Apache-2.0
// Expressions that a file compiles for GPUs, as nvcc does for a .cu file: here for simulated ones.
#include <deft/kernels/gpu/kernel_hook.hpp>

#include <deft/kernels/cpu/user_op.hpp>
#include <deft/kernels/gpu/simulated/queue.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/session/session.hpp>

#include "../../op/modeling.hpp"
#include "../arrays.hpp"
#include "../expressions.hpp"
#include "on_gpu.hpp"
#include "own_operations.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;
using gpu::kernels_of;
using gpu::make_registered;
using gpu::simulated::simulated_gpus;
using hook = gpu::simulated::used_kernels;

namespace {

/// An operation that only this file uses.
struct tilt : op::elementwise<2> {
  static constexpr std::string_view name = "test_tilt";
  template <num::value V>
  DEFT_HD V operator()(V a, V b) const {
    return num::maximum(a, b) - b / V(2) * a;
  }
  template <class N>
  static auto grad(const N& n, any_tensor dz) {
    return std::tuple{dz, dz * n.template in<0>()};
  }
};
/// An operation on integers that fails where b is 0.
struct share : op::elementwise<2> {
  static constexpr std::string_view name = "test_share";
  template <num::value V>
  DEFT_HD V operator()(V a, V b) const {
    return (a + b) / b;
  }
};
template <class Op, class A, class B>
auto make_of(const A& a, const B& b, source_location w = here()) {
  return make<Op>(w, a, b);
}

// Masks, bytes and elements of every width, and literals of two types.
using mixed = call<
    op::where,
    call<op::logical_or, call<op::less, in<double>, lit<double>>,
         call<op::logical_and, in<bool>, call<op::equal, in<std::int32_t>, lit<std::int32_t>>>>,
    call<op::cast_to<double>, in<std::uint8_t>>, call<op::sqrt, in<double>>>;

/// A sum of N + 1 inputs.
template <int N>
struct sum_of {
  using type = call<op::add, typename sum_of<N - 1>::type, F>;
};
template <>
struct sum_of<0> {
  using type = F;
};

/// The fused node of X on GPUs and on the processor.
template <class X>
void compare(const integers& literals) {
  hook::use<X>();
  const program_ref p = deft::detail::program_of<X>();
  REQUIRE(make_registered(kernels_of::simulated, *p, literals));
  const std::vector<std::vector<dims>> cases = {{{1}},
                                                {{0}},
                                                {{64}},
                                                {{1001}},
                                                {{}, {33}},
                                                {{5, 1}, {129}},
                                                {{4, 72}, {72}, {4, 1}, {}},
                                                {{3, 1, 9}, {2, 1}, {1}}};
  for (const auto& shapes : cases) {
    std::vector<any_array> inputs;
    for (dtype t : p->inputs) {
      const dims& shape = shapes[inputs.size() % shapes.size()];
      inputs.push_back(visit_dtype(
          t, [&]<class T>() { return filled<T>(shape, values<T>(3000, inputs.size() + 1)); }));
    }
    std::vector<any_array> late = inputs;
    for (std::size_t i = 0; i < literals.size(); ++i)
      late.push_back(literal_value(p->immediates[i], literals[i]));
    const any_array expected = run_all(record_of<op::fused>, {p, literals}, inputs)[0];
    for (std::size_t shift : {0, 1}) {
      const gpu_run how{.shift = shift};
      CHECK(difference(run_on_gpu(record_of<op::fused>, {p, literals}, inputs, how)[0], expected) ==
            "");
      if (literals.empty()) continue;
      const integers unused(literals.size());
      CHECK(difference(run_on_gpu(record_of<op::fused>, {p, unused}, late, how)[0], expected) ==
            "");
    }
  }
}

struct on_one_gpu : own_graph {
  session s{{.simulated_gpus = 1}};
  scope where = on(device("/gpu:0"));

  /// The number of kernels that a run launches.
  template <class Run>
  std::size_t launches(Run run) {
    simulated_gpus().reset_counts();
    run();
    return simulated_gpus().launches;
  }
};

}  // namespace

TEST_CASE("compiled expressions are registered before main, for their system") {
  const program& p = *deft::detail::program_of<call<op::neg, chain>>();
  CHECK_FALSE(make_registered(kernels_of::simulated, p, {}));
  const program& known = *deft::detail::program_of<chain>();
  CHECK(make_registered(kernels_of::simulated, known, {}));
  CHECK_FALSE(make_registered(kernels_of::cuda, known, {}));
  CHECK(make_registered(kernels_of::simulated, record_of<tilt>, dtype::float32, dtype::float32));
  CHECK_FALSE(make_registered(kernels_of::simulated, record_of<share>, dtype::uint8, dtype::uint8));
}

TEST_CASE("an expression with more operands than a kernel takes is not compiled") {
  hook::use<sum_of<20>::type>();
  hook::use<sum_of<60>::type>();
  CHECK(make_registered(kernels_of::simulated, *deft::detail::program_of<sum_of<20>::type>(), {}));
  CHECK_FALSE(
      make_registered(kernels_of::simulated, *deft::detail::program_of<sum_of<60>::type>(), {}));
}

TEST_CASE("a compiled expression gives the processor's results on GPUs") {
  compare<chain>({to_immediate(2.f)});
  compare<mixed>({to_immediate(0.5), to_immediate<std::int32_t>(1)});
}

TEST_CASE_FIXTURE(on_one_gpu, "a compiled expression is one launch for any literals") {
  placeholder<float, dyn, 8> x("x");
  placeholder<float, 8> b("b");
  ndarray<float, dyn, 8> rows(5);
  for (int i = 0; i < 40; ++i) rows.data()[i] = static_cast<float>(i - 13) / 7;
  const ndarray<float, 8> bias{1, -2, 3, -4, 5, -6, 7, -8};
  for (int i = 1; i < 5; ++i) {
    const float c = static_cast<float>(i) * 1.25f;
    auto write = [&] { return relu(x * c + b) - square(x) / (b + 0.5f); };
    ndarray<float, dyn, 8> got;
    CHECK(launches([&] { got = s.run(write(), x = rows, b = bias); }) == 1);
    auto there = on(device("/cpu:0"));
    CHECK(got == s.run(write(), x = rows, b = bias));
  }
}

namespace {

/// Folds of 3 rows of N columns, alone and with the expression that they fold.
template <std::int64_t N>
void check_folds(on_one_gpu& g) {
  CAPTURE(N);
  session apart({.fuse = false, .simulated_gpus = 1});
  placeholder<float, 3, N> x("x");
  placeholder<float, 3, 1> b("b");
  ndarray<float, 3, N> rows;
  ndarray<float, 3, 1> bias{0.25f, -0.5f, 0.125f};
  philox_stream random(5);
  for (auto& v : rows) v = random.uniform(-1, 1);
  auto check = [&](const auto& y) {
    any_array got, expected;
    const std::size_t launches =
        g.launches([&] { got = g.s.run(any_tensor(y), x = rows, b = bias); });
    CHECK(launches == (N > 1 << 14 ? 2 : 1));  // long rows are folded in several parts
    expected = apart.run(any_tensor(y), x = rows, b = bias);
    CHECK(difference(got, expected) == "");
  };
  check(sum(x * 0.5f - b, axis<-1>));
  check(mean(x * 0.5f - b, axis<-1>));
  if (N > 0) check(max(x * 0.5f - b, axis<-1>));
}

}  // namespace

TEST_CASE_FIXTURE(on_one_gpu,
                  "the fold of a compiled expression is one launch with the same bits") {
  check_folds<0>(*this);
  check_folds<2>(*this);
  check_folds<7>(*this);
  check_folds<300>(*this);
  check_folds<5000>(*this);
  check_folds<40'000>(*this);
}

TEST_CASE_FIXTURE(on_one_gpu, "a fold over all elements gives the processor's bits") {
  session apart({.fuse = false, .simulated_gpus = 1});
  placeholder<float, 9, 11> x("x");
  ndarray<float, 9, 11> v;
  for (int i = 0; i < 99; ++i) v.data()[i] = static_cast<float>(i % 17) - 6.3f;
  auto y = sum(square(x) * 3 + x);
  float got = 0;
  CHECK(launches([&] { got = s.run(y, x = v); }) == 1);
  CHECK(got == apart.run(y, x = v));
}

TEST_CASE_FIXTURE(on_one_gpu, "a division by zero in a compiled expression names node and device") {
  placeholder<std::int32_t, dyn> a("a"), b("b");
  auto y = (a + 1) / b * 2;
  const std::string e = error_of([&] { s.run(y, a = {1, 2, 3}, b = {1, 0, 2}); });
  CHECK(e.starts_with("invalid_argument: [div] integer division by zero"));
  CHECK(e.find("/gpu:0") != e.npos);
  CHECK(s.run(y, a = {1, 2, 3}, b = {1, 1, 2}) == ndarray<std::int32_t, dyn>{4, 6, 4});
}

TEST_CASE_FIXTURE(on_one_gpu, "a user's operation runs on GPUs, and on lanes") {
  placeholder<float, 2, 3> x("x");
  placeholder<float, 3> y("y");
  const ndarray<float, 2, 3> a{-1, 0.5f, 2, 3, -4, 8};
  const ndarray<float, 3> b{4, -6, 0.25f};
  tensor<float, 2, 3> alone = make_of<tilt>(x, y);
  auto inside = make_of<tilt>(x, y) * 2 + x;
  // An expression with several names runs one instruction at a time.
  tensor<float, 2, 3> doubled = alone * 2, joined = doubled + alone;
  ndarray<float, 2, 3> one, two, three, sum_of;
  CHECK(launches([&] { one = s.run(alone, x = a, y = b); }) == 1);
  CHECK(launches([&] { two = s.run(inside, x = a, y = b); }) == 1);
  three = s.run(joined, x = a, y = b);
  auto slope = std::get<0>(gradients(sum(alone), y));
  const any_array d = s.run(any_tensor(slope), x = a);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) {
      const float expected = std::max(a(i, j), b(j)) - b(j) / 2 * a(i, j);
      CHECK(one(i, j) == expected);
      CHECK(two(i, j) == expected * 2 + a(i, j));
      CHECK(three(i, j) == expected * 3);
    }
  for (int j = 0; j < 3; ++j) CHECK(d.data<float>()[j] == a(0, j) + a(1, j));
  CHECK(s.device_of(alone) == "/job:localhost/replica:0/task:0/gpu:0");

  auto there = on(device("/cpu:0"));
  session processor({.simulated_gpus = 0});
  placeholder<float, 2, 3> u("u");
  placeholder<float, 3> v("v");
  CHECK(processor.run(make_of<tilt>(u, v), u = a, v = b) == one);
  CHECK(processor.run(make_of<tilt>(u, v) * 2 + u, u = a, v = b) == two);
  // It takes any dtype that its rule accepts, through any_tensor.
  const any_tensor bytes = make_of<tilt>(any_tensor(constant<std::uint8_t>({7, 9})),
                                         any_tensor(constant<std::uint8_t>({3, 200})));
  CHECK(any_array(processor.run(bytes)).type() == dtype::uint8);
}

TEST_CASE_FIXTURE(on_one_gpu, "a user's operation may fail on GPUs") {
  placeholder<std::int64_t, dyn> a("a"), b("b");
  tensor<std::int64_t, dyn> y = make_of<share>(a, b);
  CHECK(s.run(y, a = {1, 5}, b = {1, 2}) == ndarray<std::int64_t, dyn>{2, 3});
  const std::string e = error_of([&] { s.run(y, a = {1, 2}, b = {1, 0}); });
  CHECK(e.starts_with("invalid_argument: [div] integer division by zero"));
  CHECK(e.find("test_share") != e.npos);
}

TEST_CASE_FIXTURE(on_one_gpu, "packs of a .cpp file come before the lanes of a .cu file") {
  // Used in test_simulated.cpp, too.
  placeholder<float, dyn> x("x");
  tensor<float, dyn> y = make_leak(x, x, x);
  CHECK(cpu::find_user_row(record_of<leak>, dtype::float32, dtype::float32).span > 1);
  CHECK(cpu::find_user_row(record_of<tilt>, dtype::float32, dtype::float32).span == 1);
  CHECK(s.run(y, x = {-2.f, 3.f}) == ndarray<float, dyn>{-8.f, 3.f});
}
