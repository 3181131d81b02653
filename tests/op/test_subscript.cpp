// SPDX-License-Identifier: Apache-2.0
#include <deft/expr.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/subscript.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;
using testing::own_graph;
using testing::type_of;

namespace {

void check_error(auto f, std::string_view text) {
  const std::string e = testing::error_of(f);
  INFO(e);
  CHECK(e.starts_with("invalid_argument: " + std::string(text)));
}
void check_says(auto f, std::string_view text) {
  const std::string e = testing::error_of(f);
  INFO(e);
  CHECK(e.find(text) != e.npos);
}

/// 0, 1, 2, … in a shape.
template <std::int64_t... E>
ndarray<float, E...> counted(dims shape = shape_t<E...>::value) {
  any_array a(dtype::float32, shape);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<float>()[i] = static_cast<float>(i);
  return ndarray<float, E...>(std::move(a));
}
template <class A, class B>
inline constexpr bool is = std::is_same_v<A, B>;

}  // namespace

TEST_CASE_FIXTURE(own_graph, "subscripts of a tensor") {
  placeholder<float, dyn, 3, 4> x("x");
  placeholder<std::int32_t> i("i");
  session s;
  const auto value = [&](const auto& part) { return s.run(part, x = counted<2, 3, 4>()); };

  auto last = x(-1);                        // (3,4): an index removes its axis
  auto columns = x(all, all, range<1, 3>);  // (?,3,2): bounds in <> keep the extent in the type
  auto rest = x(all, range(1, all));        // (?,?,4): from index 1 on
  auto reversed = x(range(all, all, -1));   // all of it, from the last to the first
  auto every_other = x(ellipsis, range<0, all, 2>);  // (?,3,2)
  auto apart = x(all, newaxis, 0);                   // (?,1,4)
  auto one = x(i, range(i, i + 1), 2);               // (?): where a run says
  CHECK(value(last)(0, 3) == 15);
  CHECK(value(columns)(1, 2, 1) == 22);
  CHECK(value(rest)(0, 0, 0) == 4);
  CHECK(value(reversed)(0, 0, 0) == 12);
  CHECK(value(every_other)(0, 0, 1) == 2);
  CHECK(value(apart)(1, 0, 3) == 15);
  CHECK(s.run(one, x = counted<2, 3, 4>(), i = 1)(0) == 18);

  static_assert(is<decltype(last), tensor<float, 3, 4>>);
  static_assert(is<decltype(columns), tensor<float, dyn, 3, 2>>);
  static_assert(is<decltype(rest), tensor<float, dyn, dyn, 4>>);
  static_assert(is<decltype(every_other), tensor<float, dyn, 3, 2>>);
  static_assert(is<decltype(apart), tensor<float, dyn, 1, 4>>);
  static_assert(is<decltype(one), tensor<float, dyn>>);
}

TEST_CASE_FIXTURE(own_graph, "types of parts") {
  placeholder<float, dyn, 10> x("x");
  placeholder<std::int64_t> n("n");
  static_assert(is<decltype(x(0)), tensor<float, 10>>);
  static_assert(is<decltype(x(0, 0)), tensor<float>>);
  static_assert(is<decltype(x(at<0>, at<9>)), tensor<float>>);
  static_assert(is<decltype(x(all)), tensor<float, dyn, 10>>);
  static_assert(is<decltype(x(range<2, 5>)), tensor<float, 3, 10>>);
  static_assert(is<decltype(x(range<2, 5>())), tensor<float, 3, 10>>);
  static_assert(is<decltype(x(range<-3, all>)), tensor<float, 3, 10>>);
  static_assert(is<decltype(x(range<1, -1>)), tensor<float, dyn, 10>>);
  static_assert(is<decltype(x(all, range<1, -1>)), tensor<float, dyn, 8>>);
  static_assert(is<decltype(x(all, range<all, all, -3>)), tensor<float, dyn, 4>>);
  static_assert(is<decltype(x(all, range<-1, 0, -2>)), tensor<float, dyn, 5>>);
  static_assert(is<decltype(x(all, range<10, 10>)), tensor<float, dyn, 0>>);
  static_assert(is<decltype(x(range(0, n))), tensor<float, dyn, 10>>);
  static_assert(is<decltype(x(newaxis, ellipsis, 0)), tensor<float, 1, dyn>>);
  static_assert(is<decltype((x * 2)(ellipsis)), tensor<float, dyn, 10>>);
  static_assert(is<decltype(any_tensor(x)(0, range<0, 2>)), any_tensor>);
  CHECK(same(x(all), x));
  CHECK(same(x(ellipsis), x));
  CHECK(same(x(0, range(2, 5)), any_tensor(x)(at<0>, range<2, 5>)));
  CHECK(type_of(any(dtype::int32, {4, 5})(1, newaxis, range(2, all))) == "int32(1,3)");
  CHECK(type_of(any(dtype::int32, {dyn, 5})(range(-2, all), -1)) == "int32(2)");
  CHECK(maker(x(all, range(2, 5))).def->name == "slice");
}

TEST_CASE_FIXTURE(own_graph, "parts have the elements that Python's have") {
  placeholder<float, dyn> x("x");
  placeholder<float, 7> y("y");
  placeholder<std::int32_t> i("i");
  placeholder<std::int64_t> j("j");
  session s;
  const std::int64_t n = 7;
  // Python's slice.indices for bounds within the axis.
  const auto expected = [&](std::int64_t first, std::int64_t last, std::int64_t step) {
    std::vector<float> all;
    first += first < 0 ? n : 0;
    last = last < -n ? -1 : last < 0 ? last + n : last;
    for (std::int64_t k = first; step > 0 ? k < last : k > last; k += step)
      all.push_back(static_cast<float>(k));
    return all;
  };
  const auto compare = [](const any_array& got, const std::vector<float>& want) {
    REQUIRE(got.shape() == dims{static_cast<std::int64_t>(want.size())});
    CHECK(std::equal(want.begin(), want.end(), got.data<float>()));
  };
  const auto check = [&](const auto& subscript, const std::vector<float>& want) {
    compare(s.run(any_tensor(x(subscript)), x = counted<dyn>({n})), want);
    compare(s.run(any_tensor(y(subscript)), y = counted<7>()), want);
  };
  const auto check_at = [&](const auto& subscript, const std::vector<float>& want) {
    const any_tensor used = cast<float>(cast<std::int64_t>(i) + j) * 0.f;  // each feed is
    compare(s.run(any_tensor(x(subscript)) + used, x = counted<dyn>({n}), i = 2, j = 5), want);
    compare(s.run(any_tensor(y(subscript)) + used, y = counted<7>(), i = 2, j = 5), want);
  };
  for (std::int64_t step : {1, 2, 3, 9})
    for (std::int64_t first : {0, 1, 4, 7, -7, -3})
      for (std::int64_t last : {0, 1, 5, 7, -6, -1}) {
        CAPTURE(step);
        CAPTURE(first);
        CAPTURE(last);
        if ((first < 0 ? first + n : first) > (last < 0 ? last + n : last)) continue;
        check(range(first, last, step), expected(first, last, step));
        if (first != 7 && last != 7 && last != 0)
          check(range(last, first, -step), expected(last, first, -step));
      }
  check(range(all, all), expected(0, n, 1));
  check(range(all, 3, 2), expected(0, 3, 2));
  check(range(all, all, -1), expected(n - 1, -n - 1, -1));
  check(range(all, 2, -2), expected(n - 1, 2, -2));
  check(range(4, all, -3), expected(4, -n - 1, -3));
  check_at(range(i, j), expected(2, 5, 1));
  check_at(range(i, -1, 2), expected(2, 6, 2));
  check_at(range(j, i, -1), expected(5, 2, -1));
  check_at(range(j, all, -2), expected(5, -n - 1, -2));
  check_at(range(all, i, -1), expected(n - 1, 2, -1));
  check_at(range(1, j, 3), expected(1, 5, 3));
  CHECK(s.run(x(i) + x(-1) * 10 + y(j) * 100, x = counted<dyn>({n}), y = counted<7>(), i = 2,
              j = 5) == 562);
}

TEST_CASE_FIXTURE(own_graph, "parts that are not there are refused") {
  placeholder<float, dyn, 10> x("x");
  placeholder<std::int32_t> i("i");
  const any_tensor a = any(dtype::float32, {4, 10});
  check_error([&] { a(4); },
              "[subscript] the index 4 of axis 0 is out of range: its extent is 4 in (4,10), so "
              "that it is at most 3");
  check_error([&] { a(all, -11); }, "[subscript] the index -11 of axis 1 is out of range");
  check_error([&] { x(all, range(2, 11)); },
              "[subscript] the bound 11 of axis 1 is out of range: its extent is 10");
  check_error([&] { a(range(-5, all)); }, "[subscript] the bound -5 of axis 0 is out of range");
  check_error([&] { a(range(4, all, -1)); }, "[subscript] the bound 4 of axis 0 is out of range");
  check_error([&] { a(range(3, 1)); },
              "[range] a range along axis 0 of (4,10) ends before it begins");
  check_error([&] { x(range(3, 1)); }, "[range] a range along axis 0 of (?,10) ends");
  check_error([&] { a(0, 0, 0); },
              "[subscript] expects one subscript of each axis of (4,10) at most");
  check_error([&] { a(ellipsis, ellipsis); }, "[subscript] expects one subscript of each axis");
  check_error([&] { range(0, 1, 0); }, "[range] expects a step other than 0");
  check_error([&] { a(any(dtype::int32, {2})); },
              "a shape or an index that a run computes is made of integer scalars");
  session s;
  const any_tensor used = cast<float>(i) * 0.f;  // the feed is
  const auto run = [&](const auto& part) {
    return [&s, &x, &i, both = part + used] { s.run(both, x = counted<3, 10>(), i = 3); };
  };
  const std::string_view outside =
      "(3,10) has no part of size (1,?) at (3,0): along axis 0 it has indices from 0 to below 3";
  check_says(run(x(3)), outside);
  check_says(run(x(i)), outside);
  check_says(run(x(-4)), "the first index of axis 0 is -1, and must not be negative");
  check_says(run(x(i - 4)), "the first index of axis 0 is -1, and must not be negative");
  check_says(run(x(range(2, 5))), "(3,10) has no part of size (3,?) at (2,0)");
  check_says(run(x(all, range(i, i - 1))), "the size of axis 1 is -1, and must not be negative");
}

TEST_CASE_FIXTURE(own_graph, "gradients of parts") {
  placeholder<double, dyn, 5> x("x");
  placeholder<std::int32_t> i("i");
  session s;
  ndarray<double, 4, 5> value;
  std::fill(value.begin(), value.end(), 1.5);
  const auto sums = [&](const auto& part) {
    auto [dx] = gradients(sum(part * part) + cast<double>(i), x);
    return s.run(dx + cast<double>(i) * 0., x = value, i = 1);
  };
  const auto a = sums(x(i, range<0, all, 2>));
  const auto b = sums(x(range(all, all, -3), 4));
  const auto c = sums(x(range(-1, i, -1), newaxis, range<3, 0, -2>));
  const auto d = sums(x(range(i, 3, 2), range(1, all)));
  for (std::int64_t r = 0; r < 4; ++r)
    for (std::int64_t k = 0; k < 5; ++k) {
      CAPTURE(r);
      CAPTURE(k);
      CHECK(a(r, k) == (r == 1 && k % 2 == 0 ? 3 : 0));
      CHECK(b(r, k) == (r % 3 == 0 && k == 4 ? 3 : 0));
      CHECK(c(r, k) == (r > 1 && (k == 3 || k == 1) ? 3 : 0));
      CHECK(d(r, k) == (r == 1 && k > 0 ? 3 : 0));
    }
}
