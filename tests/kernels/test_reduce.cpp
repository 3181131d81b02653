// SPDX-License-Identifier: Apache-2.0
#include <deft/core/num_lane.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/max.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/min.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/sum_to.hpp>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

/// Folds x over `axes` one element after another, in long double or wrapping integers.
template <class T, class F>
any_array naive(const any_array& x, const dims& axes, const dims& out, double start, F f) {
  using Sum = std::conditional_t<deft::ext::is_floating_type<T>, long double, T>;
  std::vector<Sum> sums(static_cast<std::size_t>(out.elements()), static_cast<Sum>(start));
  dims kept;  // out's shape with reduced axes as 1
  for (int d = 0; d < x.shape().rank(); ++d) kept.push_back(axes.contains(d) ? 1 : x.shape()[d]);
  broadcast_index index(kept, x.shape());
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    auto& s = sums[static_cast<std::size_t>(index.offset[static_cast<std::size_t>(i)])];
    s = f(s, static_cast<Sum>(x.data<T>()[i]));
  }
  any_array r(dtype_of<T>, out);
  for (std::int64_t i = 0; i < r.elements(); ++i)
    r.mutable_data<T>()[i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
  return r;
}

struct shape_axes {
  dims shape, axes;
};
const std::vector<shape_axes>& cases() {
  static const std::vector<shape_axes> c = {
      {{}, {}},
      {{1}, {0}},
      {{7}, {0}},
      {{1000}, {0}},
      {{100'003}, {0}},
      {{1}, {}},
      {{5, 6}, {}},
      {{100, 70}, {0}},
      {{100, 70}, {1}},
      {{100, 70}, {0, 1}},
      {{1000, 10}, {0}},
      {{999, 3}, {0}},
      {{10, 1000}, {1}},
      {{3, 300}, {0}},
      {{300, 300}, {0}},
      {{1, 50}, {0}},
      {{50, 1}, {1}},
      {{4, 5, 6}, {0}},
      {{4, 5, 6}, {1}},
      {{4, 5, 6}, {2}},
      {{4, 5, 6}, {0, 1}},
      {{4, 5, 6}, {0, 2}},
      {{4, 5, 6}, {1, 2}},
      {{4, 5, 6}, {0, 1, 2}},
      {{2, 3, 4, 5, 6}, {1, 3}},
      {{2, 3, 4, 5, 6}, {0, 2, 4}},
      {{3, 200, 70}, {1}},
      {{2, 200, 3, 70}, {0, 2}},
      {{2, 1, 2, 1, 3, 1, 2}, {0, 1, 4}},
      {{0}, {0}},
      {{0, 3}, {0}},
      {{3, 0}, {0}},
      {{3, 0, 2}, {1}},
  };
  return c;
}

template <class T, class Op, class F>
void check_all(double start, F f) {
  for (const auto& c : cases())
    for (bool keep : {false, true}) {
      const dims shape = c.shape, axes = c.axes;
      Op o;
      o.axes = axes;
      o.keepdims = keep;
      INFO(Op::name << " of " << to_string(dtype_of<T>) << to_string(shape) << " over "
                    << to_string(axes));
      any_array x = moderate<T>(shape);
      if ((std::is_same_v<Op, op::max> || std::is_same_v<Op, op::min>)&&shape.elements() == 0)
        continue;
      any_array r = run_op(o, {x});
      any_array expected = naive<T>(x, axes, o.shape(shape), start, f);
      if (std::is_same_v<Op, op::mean>)
        for (std::int64_t i = 0; i < expected.elements(); ++i)
          expected.mutable_data<T>()[i] /=
              static_cast<T>(static_cast<double>(x.elements()) / expected.elements());
      const double size = std::max<double>(
          1, static_cast<double>(x.elements()) / std::max<double>(1, expected.elements()));
      CHECK(difference(r, expected, 4, std::is_same_v<Op, op::mean> ? 2 : 2 * std::sqrt(size)) ==
            "");
    }
}

}  // namespace

TEST_CASE_TEMPLATE("sums agree with naive loops over any axes", T, float, double, std::int32_t,
                   std::int64_t, std::uint8_t, std::int8_t) {
  check_all<T, op::sum>(0, [](auto a, auto b) {
    if constexpr (element<decltype(a)>)
      return (num::lane<decltype(a)>(a) + b).v;
    else
      return a + b;
  });
}
TEST_CASE_TEMPLATE("means agree with naive loops over any axes", T, float, double) {
  check_all<T, op::mean>(0, [](auto a, auto b) { return a + b; });
}
TEST_CASE_TEMPLATE("maxima agree with naive loops over any axes", T, float, double, std::int32_t,
                   std::int64_t, std::uint8_t, std::int8_t) {
  check_all<T, op::max>(deft::ext::is_floating_type<T>
                            ? -INFINITY
                            : static_cast<double>(std::numeric_limits<T>::min()),
                        [](auto a, auto b) { return b > a ? b : a; });
}

TEST_CASE_TEMPLATE("minima agree with naive loops over any axes", T, float, double, std::int32_t,
                   std::int64_t, std::uint8_t, std::int8_t) {
  check_all<T, op::min>(
      deft::ext::is_floating_type<T>
          ? INFINITY
          : static_cast<double>(std::numeric_limits<T>::max() / (sizeof(T) == 8 ? 2 : 1)),
      [](auto a, auto b) { return b < a ? b : a; });
}

TEST_CASE("max and min propagate NaN from any element") {
  for (std::int64_t at : {0, 5, 63, 64, 100, 999}) {
    any_array x = moderate<float>({1000});
    x.mutable_data<float>()[at] = NAN;
    CHECK(std::isnan(run_op(op::max{{dims{0}, false}}, {x}).data<float>()[0]));
    CHECK(std::isnan(run_op(op::min{{dims{0}, false}}, {x}).data<float>()[0]));
    any_array columns(dtype::float32, {1000, 3});
    for (int i = 0; i < 3000; ++i) columns.mutable_data<float>()[i] = x.data<float>()[i / 3];
    any_array m = run_op(op::max{{dims{0}, false}}, {columns});
    for (int i = 0; i < 3; ++i) CHECK(std::isnan(m.data<float>()[i]));
  }
}

TEST_CASE("the sum of no elements is 0, the mean NaN, and max and min are refused") {
  any_array x(dtype::float32, {0, 2});
  CHECK(identical(run_op(op::sum{{dims{0}, false}}, {x}), filled<float>({2}, {0})));
  CHECK(std::isnan(run_op(op::mean{{dims{0}, false}}, {x}).data<float>()[0]));
  CHECK(error_of([&] { run_op(op::max{{dims{0}, false}}, {x}); }) != "");
  CHECK(error_of([&] { run_op(op::min{{dims{0}, false}}, {x}); }) != "");
}

TEST_CASE("sum_to undoes broadcasting") {
  struct {
    dims x, like;
    dims axes;
  } shapes[] = {{{5, 6}, {6}, {0}},
                {{5, 6}, {1, 6}, {0}},
                {{5, 6}, {5, 1}, {1}},
                {{5, 6}, {}, {0, 1}},
                {{5, 6}, {5, 6}, {}},
                {{2, 3, 4}, {3, 1}, {0, 2}},
                {{2, 3, 4}, {1, 1}, {0, 1, 2}},
                {{0, 4}, {1, 4}, {0}}};
  for (const auto& s : shapes) {
    INFO(to_string(s.x) << " to " << to_string(s.like));
    any_array x = moderate<float>(s.x), like = moderate<float>(s.like);
    any_array expected = naive<float>(x, s.axes, s.like, 0, [](auto a, auto b) { return a + b; });
    CHECK(difference(run_op(op::sum_to(), {x, like}), expected, 4, 4) == "");
  }
}

TEST_CASE("long sums keep their accuracy") {
  // Twenty levels of a tree over leaves of about a thousand: half a unit at each would be more.
  any_array x = filled<float>({4'000'000}, {0.1f});
  CHECK(close(run_op(op::sum{{dims{0}, false}}, {x}).data<float>()[0], 4e6f * 0.1f, 16));
  any_array tall = filled<float>({1'000'000, 4}, {0.1f});
  CHECK(close(run_op(op::sum{{dims{0}, false}}, {tall}).data<float>()[2], 1e6f * 0.1f, 16));
}

TEST_CASE("reductions have the same bits for any number of threads") {
  for (const auto& c :
       {shape_axes{{3'000'000}, {0}}, shape_axes{{2000, 1500}, {0}}, shape_axes{{2000, 1500}, {1}},
        shape_axes{{50, 200, 300}, {1}}, shape_axes{{300'000, 7}, {0}}}) {
    any_array x = moderate<float>(c.shape), first;
    for (int threads : {1, 2, 3}) {
      set_intra_op_threads(threads);
      any_array r = run_op(op::sum{{c.axes, false}}, {x});
      if (!first.valid()) first = r;
      CHECK(identical(r, first));
    }
    set_intra_op_threads(0);
  }
}
