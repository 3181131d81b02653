// SPDX-License-Identifier: Apache-2.0
#include <deft/deft.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::own_graph;

namespace {

void check_error(auto f, std::string_view text) {
  const std::string e = testing::error_of(f);
  INFO(e);
  CHECK(e.starts_with("invalid_argument: " + std::string(text)));
}

/// A key of two sequences.
ndarray<float, 2, 1, 3> key_of(float v) { return {{{v, v, v}}, {{v, v, v}}}; }

}  // namespace

TEST_CASE_FIXTURE(own_graph, "parts of a variable are targets") {
  variable<float, 4, 3> v("v", zeros());
  session s;
  s.run(initialize_all());
  s.run(v(range(1, 3), all).assign(5));                                   // a number fills it
  s.run(v(0).assign(std::vector<float>{1, 2, 3}));                        // a row
  s.run(v(range(2, 4), range<0, 2>).assign_add(constant({10.f, 20.f})));  // broadcast to two rows
  s.run(v(all, -1).assign_sub(1));
  CHECK(s.run(v) == ndarray<float, 4, 3>{{1, 2, 2}, {5, 5, 4}, {15, 25, 4}, {10, 20, -1}});
  CHECK(s.run(v(2)) == ndarray<float, 3>{15, 25, 4});  // and in an expression a value
}

TEST_CASE_FIXTURE(own_graph, "a cache of keys is a variable, whose rows are set where a run says") {
  constexpr std::int64_t steps = 6;
  variable<float, 2, steps, 3> cache("cache", zeros());
  placeholder<float, 2, 1, 3> key("key");
  placeholder<std::int32_t> pos("pos");
  auto keys = cache(all, range(pos, pos + 1)).assign(key).value();
  tensor<float, 2> last = sum(keys(all, range(0, pos + 1)), axis<1, 2>);
  session s;
  s.run(initialize_all());
  auto step = s.prepare(last, feeds(key, pos));
  for (int i = 0; i < steps; ++i) {
    const ndarray<float, 2> sums = step(key_of(static_cast<float>(i + 1)), i);
    CHECK(sums(1) == static_cast<float>(3 * (i + 1) * (i + 2) / 2));
  }
  const std::string e = testing::error_of([&] { step(key_of(9), int{steps}); });
  INFO(e);
  CHECK(e.find("[assign_slice] (2,6,3) has no part of size (2,1,3) at (0,6,0): along axis 1") !=
        e.npos);
  const auto kept = s.run(cache);
  CHECK(kept(1, 5, 2) == 6);
}

TEST_CASE_FIXTURE(own_graph, "parts are updated in place, unless others hold the old value") {
  variable<float, 1000, 10> v("v", zeros());
  session s;
  s.run(initialize_all());
  const auto before = s.run(v);
  s.run(v(range(10, 20)).assign(1));
  CHECK(before(10, 0) == 0);  // what was fetched stays
  const auto [old, now] = s.run(v(10, 0), v(range(10, 20)).assign(2).value());
  CHECK(old == 1);
  CHECK(now(10, 0) == 2);
  CHECK(now(20, 0) == 0);
}

TEST_CASE_FIXTURE(own_graph, "steps, new axes and other dtypes as targets") {
  variable<std::int8_t, 2, 5> v("v", zeros());
  variable<bool, 4> flags("flags", false);
  any_variable a("a", {2, 2, 3}, 0., dtype::float64);
  session s;
  s.run(initialize_all());
  s.run(v(all, range<all, all, -2>).assign(ndarray<std::int8_t, 3>{1, 2, 3}));
  s.run(v(1, newaxis, range(1, 4, 2)).assign(ndarray<std::int8_t, 1, 2>{7, 8}));
  s.run(v(0).assign_add(127));
  CHECK(s.run(v) == ndarray<std::int8_t, 2, 5>{{-126, 127, -127, 127, -128}, {3, 7, 2, 8, 1}});
  s.run(flags(range(1, 3)).assign(true));
  CHECK(s.run(flags) == ndarray<bool, 4>{false, true, true, false});
  s.run(a(1, ellipsis, range(all, all, -1)).assign(constant({1., 2., 3.})));
  s.run(a(all, 0, 2).assign_sub(any_tensor(constant({4., 5.}))));
  const any_array got = s.run(a);
  const double want[] = {0, 0, -4, 0, 0, 0, 3, 2, -4, 3, 2, 1};
  CHECK(std::equal(std::begin(want), std::end(want), got.data<double>()));
  const any_array part = s.run(a(1, 0) + 1.);
  CHECK(part.data<double>()[2] == -3);
}

TEST_CASE_FIXTURE(own_graph, "large parts have the same elements on one thread and on several") {
  variable<float, 3000, 257> v("v", zeros());
  placeholder<float, 1000, 256> x("x");
  any_array a(dtype::float32, {1000, 256});
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<float>()[i] = static_cast<float>(i);
  const ndarray<float, 1000, 256> value(std::move(a));
  session s;
  s.run(initialize_all());
  s.run(v(range(2, all, 3), range(all, 0, -1)).assign_add(x), x = value);
  const auto got = s.run(v);
  bool right = true;
  for (std::int64_t r = 0; r < 3000; ++r)
    for (std::int64_t k = 0; k < 257; ++k)
      right = right && got(r, k) == (r % 3 == 2 && k > 0 ? value(r / 3, 256 - k) : 0.f);
  CHECK(right);
  CHECK(s.run(v(range(2, all, 3), range<all, 0, -1>)) == value);
}

TEST_CASE_FIXTURE(own_graph, "a variable whose extents only its initial value says") {
  variable<float, dyn, 2> v("v", {5, 2}, zeros());
  placeholder<std::int64_t> n("n");
  session s;
  s.run(initialize_all());
  s.run(v(range(-2, all)).assign(1));
  s.run(v(range(0, n), 1).assign_sub(2), n = 3);
  CHECK(s.run(v) == ndarray<float, dyn, 2>{{0, -2}, {0, -2}, {0, -2}, {1, 1}, {1, 1}});
  CHECK(testing::error_of([&] { s.run(v(5).assign(1)); }).find("axis 0") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "values that do not fit are refused") {
  any_variable v("v", {4, 3}, 0.f);
  const any_tensor wide = testing::any(dtype::float32, {2, 4}),
                   whole = testing::any(dtype::int32, {3}),
                   some = testing::any(dtype::float32, {dyn, 3});
  check_error([&] { v(range(0, 2)).assign(wide); },
              "[assign_slice] float(2,4) cannot be broadcast to the part (2,3) of variable \"v\", "
              "which is float(4,3)");
  check_error([&] { v(0).assign_add(whole); },
              "[assign_add_slice] int32(1,3) cannot be broadcast to the part (1,3)");
  check_error([&] { v(0).assign_sub(some); },
              "[assign_sub_slice] float(?,3) cannot be broadcast to the part of variable \"v\"");
  check_error([&] { v(4).assign(0); }, "[subscript] the index 4 of axis 0 is out of range");
  any_variable b("b", {4}, false, dtype::boolean);
  check_error([&] { b(0).assign_add(true); }, "[assign_add_slice] is not defined for bool");
  session s;
  s.run(initialize_all());
  const auto rows = [](std::int64_t n) { return any_array(dtype::float32, {n, 3}); };
  CHECK(testing::error_of([&] {
          s.run(v(range(0, 2)).assign(some), feed(some, rows(3)));
        }).find("float(3,3) cannot be broadcast to the part (2,3)") != std::string::npos);
  s.run(v(range(0, 2)).assign(some), feed(some, rows(1)));
  check_error([&] { s.run(v(0).assign(1), v(1).assign(2)); }, "");
}
