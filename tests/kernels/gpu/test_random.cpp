// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/team.hpp>
#include <deft/op/random_normal.hpp>
#include <deft/op/random_uniform.hpp>
#include <deft/op/truncated_normal.hpp>

#include "../arrays.hpp"
#include "on_gpu.hpp"
#include "testing.hpp"

using namespace deft;
using namespace testing;

namespace {

template <class Op>
Op over(const dims& shape, dtype type, std::uint64_t key = 42) {
  Op o;
  o.shape = shape;
  o.type = type;
  o.key = key;
  return o;
}
/// Compares with the processor's bits.
template <class Op>
void check_same(const Op& o, std::uint64_t step = 3) {
  INFO(Op::name << to_string(o.shape) << o.type);
  const any_array expected = run_op(o, {}, step);
  for (std::size_t shift : {0, 1})
    CHECK(identical(run_op_on_gpu(o, {}, {.step = step, .shift = shift}), expected));
}

}  // namespace

TEST_CASE_TEMPLATE("GPUs draw the processor's bits, for any number of elements", T, float, double) {
  for (std::int64_t n : {0, 1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 1009}) {
    check_same(over<op::random_uniform>({n}, dtype_of<T>));
    check_same(over<op::random_normal>({n}, dtype_of<T>));
    check_same(over<op::truncated_normal>({n}, dtype_of<T>));
  }
  check_same(over<op::random_normal>({3, 0, 4}, dtype_of<T>));
  check_same(over<op::random_normal>({3, 7, 11}, dtype_of<T>));
}

TEST_CASE_TEMPLATE("a million numbers of every distribution, by parameters, key and step", T, float,
                   double) {
  const dims shape{1000, 1001};
  for (const std::uint64_t bits : {1ull, 0x0123456789abcdefull, 0xffffffff00000001ull}) {
    auto uniform = over<op::random_uniform>(shape, dtype_of<T>, bits);
    uniform.low = -0.3, uniform.high = 2.9;
    check_same(uniform, ~bits);
    auto normal = over<op::random_normal>(shape, dtype_of<T>, bits);
    normal.mean = 5, normal.stddev = 0.7;
    check_same(normal, ~bits);
    auto truncated = over<op::truncated_normal>(shape, dtype_of<T>, bits);
    truncated.stddev = 0.05;
    check_same(truncated, ~bits);
  }
}

TEST_CASE_TEMPLATE("uniform numbers on GPUs never leave their interval, however narrow", T, float,
                   double) {
  auto o = over<op::random_uniform>({10'000}, dtype_of<T>);
  for (auto [low, high] :
       {std::pair{0.1, 0.1 + 1e-7}, {16777216., 16777220.}, {-0.1, 0.1}, {0., 1e-30}, {2.5, 2.5}}) {
    o.low = low, o.high = high;
    check_same(o);
    const any_array drawn = run_op_on_gpu(o, {});
    for (T v : drawn.span<T>()) {
      REQUIRE(v >= low);
      REQUIRE((v < high || low == high));
    }
  }
}

TEST_CASE("initial values on GPUs are those of step 0 in every step") {
  auto o = over<op::random_normal>({100}, dtype::float32);
  o.every_step = false;
  check_same(o, 9);
  CHECK(identical(run_op_on_gpu(o, {}, {.step = 9}), run_op_on_gpu(o, {}, {.step = 0})));
  o.every_step = true;
  CHECK_FALSE(identical(run_op_on_gpu(o, {}, {.step = 9}), run_op_on_gpu(o, {}, {.step = 0})));
}
