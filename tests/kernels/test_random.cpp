// SPDX-License-Identifier: Apache-2.0
#include <deft/core/philox.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/random_normal.hpp>
#include <deft/op/random_uniform.hpp>
#include <deft/op/truncated_normal.hpp>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

template <class Op>
Op over(const dims& shape, dtype type = dtype::float32, std::uint64_t key = 42) {
  Op o;
  o.shape = shape;
  o.type = type;
  o.key = key;
  return o;
}

struct moments {
  double mean = 0, variance = 0, least = INFINITY, most = -INFINITY;
  explicit moments(const any_array& a) {
    visit_dtype(a.type(), [&]<class T>() {
      for (T v : a.span<T>()) {
        const auto d = static_cast<double>(v);
        mean += d, variance += d * d;
        least = std::min(least, d), most = std::max(most, d);
      }
    });
    mean /= static_cast<double>(a.elements());
    variance = variance / static_cast<double>(a.elements()) - mean * mean;
  }
};

}  // namespace

TEST_CASE("element i is a word of Philox, by key, step and i alone") {
  any_array u = run_op(over<op::random_uniform>({1000}, dtype::float32, 0x123456789abcdefu), {}, 7);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    // Groups of 64: word w of block 16 g + l is element 64 g + 16 w + l.
    const std::uint32_t group = i / 64, word = i % 64 / 16, lane = i % 16;
    const auto words = philox({group * 16 + lane, 0, 7, 0}, {0x89abcdef, 0x1234567});
    CHECK(u.data<float>()[i] == unit_float(words[word]));
  }
}

TEST_CASE_TEMPLATE("the distributions have their moments and bounds", T, float, double) {
  const dims shape{1'000'000};
  const dtype type = dtype_of<T>;
  auto uniform = over<op::random_uniform>(shape, type);
  uniform.low = -1, uniform.high = 3;
  moments u(run_op(uniform, {}));
  CHECK(u.mean == doctest::Approx(1).epsilon(0.01));
  CHECK(u.variance == doctest::Approx(16. / 12).epsilon(0.01));
  CHECK(u.least >= -1);
  CHECK(u.most < 3);
  auto normal = over<op::random_normal>(shape, type);
  normal.mean = 5, normal.stddev = 2;
  moments n(run_op(normal, {}));
  CHECK(n.mean == doctest::Approx(5).epsilon(0.01));
  CHECK(n.variance == doctest::Approx(4).epsilon(0.01));
  CHECK(n.most > 5 + 4 * 2);
  auto truncated = over<op::truncated_normal>(shape, type);
  truncated.stddev = 0.5;
  moments t(run_op(truncated, {}));
  CHECK(std::abs(t.mean) < 0.005);
  CHECK(t.variance == doctest::Approx(0.7737 * 0.25).epsilon(0.01));
  CHECK(t.least >= -1);
  CHECK(t.most <= 1);
}

TEST_CASE("equal keys and steps give the same bits, for any size and number of threads") {
  auto draw = [](std::int64_t n, std::uint64_t key, std::uint64_t step) {
    return run_op(over<op::truncated_normal>({n}, dtype::float32, key), {}, step);
  };
  any_array first = draw(300'001, 1, 2);
  for (int threads : {1, 2, 4}) {
    set_intra_op_threads(threads);
    CHECK(identical(draw(300'001, 1, 2), first));
  }
  set_intra_op_threads(0);
  any_array shorter = draw(77, 1, 2);
  CHECK(std::memcmp(shorter.raw(), first.raw(), shorter.bytes()) == 0);
  CHECK_FALSE(identical(draw(300'001, 1, 3), first));
  CHECK_FALSE(identical(draw(300'001, 2, 2), first));
}

TEST_CASE("initial values are those of step 0 in every step") {
  auto o = over<op::random_normal>({100});
  o.every_step = false;
  CHECK(identical(run_op(o, {}, 0), run_op(o, {}, 9)));
  o.every_step = true;
  CHECK_FALSE(identical(run_op(o, {}, 0), run_op(o, {}, 9)));
}

TEST_CASE("the normal distributions give known values on every processor") {
  // The inverse distribution function of the words, from another implementation of AS 241.
  any_array n = run_op(over<op::random_normal>({1000}, dtype::float64, 12345), {}, 1);
  CHECK(n.data<double>()[0] == doctest::Approx(-0.037444221013523835).epsilon(1e-14));
  CHECK(n.data<double>()[17] == doctest::Approx(0.32936396077136504).epsilon(1e-14));
  CHECK(n.data<double>()[999] == doctest::Approx(1.4431141863925554).epsilon(1e-14));
  any_array f = run_op(over<op::random_normal>({1000}, dtype::float32, 12345), {}, 1);
  CHECK(f.data<float>()[0] == doctest::Approx(-0.0374441631).epsilon(5e-7));
  CHECK(f.data<float>()[999] == doctest::Approx(-0.237573937).epsilon(5e-7));
}

TEST_CASE("there may be no elements, or a range of one number") {
  CHECK(run_op(over<op::random_uniform>({0, 4}), {}).elements() == 0);
  auto o = over<op::random_uniform>({50});
  o.low = o.high = 2.5;
  CHECK(identical(run_op(o, {}), filled<float>({50}, {2.5f})));
}

TEST_CASE_TEMPLATE("uniform numbers never leave their interval, however narrow", T, float, double) {
  auto o = over<op::random_uniform>({100'000}, dtype_of<T>);
  for (auto [low, high] : {std::pair{0.1, 0.1 + 1e-7},
                           {16777216., 16777220.},
                           {-3.3, -0.7},
                           {-0.1, 0.1},
                           {0., 1e-30}}) {
    o.low = low, o.high = high;
    CAPTURE(low);
    const moments m(run_op(o, {}));
    CHECK(m.least >= low);
    CHECK(m.most < high);
  }
}

TEST_CASE("bounds that the dtype cannot represent are refused") {
  auto refused = [](double low, double high, dtype t) {
    auto o = over<op::random_uniform>({2}, t);
    o.low = low, o.high = high;
    return error_of([&] { run_op(o, {}); });
  };
  CHECK(refused(-1.7e308, 1.7e308, dtype::float64) ==
        "invalid_argument: [random_uniform] the range [-1.7e+308, 1.7e+308) is wider than the "
        "largest double");
  CHECK(refused(0, 1e300, dtype::float32) ==
        "invalid_argument: [random_uniform] 1e+300 is not finite as float");
  CHECK(refused(0, 1e300, dtype::float64).empty());
  CHECK(refused(16777217, 16777218, dtype::float32) ==
        "invalid_argument: [random_uniform] no float lies in [16777217, 16777218)");
  CHECK(refused(16777217, 16777218, dtype::float64).empty());
}
