// SPDX-License-Identifier: Apache-2.0
#include <deft/op/arange.hpp>
#include <deft/op/size_of.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::any;
using testing::type_of;

TEST_CASE_FIXTURE(testing::own_graph, "numbers that follow each other have a type") {
  placeholder<float, dyn> x("x");
  placeholder<std::int32_t> i("i");
  static_assert(std::is_same_v<decltype(arange(shape<5>)), tensor<std::int64_t, 5>>);
  static_assert(std::is_same_v<decltype(arange<float>(shape<5>)), tensor<float, 5>>);
  static_assert(std::is_same_v<decltype(arange(5)), tensor<std::int64_t, dyn>>);
  static_assert(std::is_same_v<decltype(arange<double>(i)), tensor<double, dyn>>);
  static_assert(std::is_same_v<decltype(arange(size_of(x))), tensor<std::int64_t, dyn>>);
  static_assert(std::is_same_v<decltype(arange(0, 5)), tensor<std::int64_t, dyn>>);
  static_assert(std::is_same_v<decltype(arange(0, 1.5f, 0.5f)), tensor<float, dyn>>);
  static_assert(std::is_same_v<decltype(arange(0, 1.5)), tensor<double, dyn>>);
  static_assert(std::is_same_v<decltype(arange<std::int32_t>(0, 5)), tensor<std::int32_t, dyn>>);
  static_assert(std::is_same_v<decltype(arange(i, 5, 2)), tensor<std::int32_t, dyn>>);
  CHECK(type_of(any_tensor(arange(5))) == "int64(5)");
  CHECK(type_of(arange(any(dtype::int32, {}), 5)) == "int32(?)");
}

TEST_CASE_FIXTURE(testing::own_graph, "numbers that follow each other, as NumPy has them") {
  session s;
  using longs = ndarray<std::int64_t, dyn>;
  using floats = ndarray<float, dyn>;
  CHECK(s.run(arange(shape<4>)) == ndarray<std::int64_t, 4>{0, 1, 2, 3});
  CHECK(s.run(arange<std::uint8_t>(3)) == ndarray<std::uint8_t, dyn>{0, 1, 2});
  CHECK(s.run(arange(2, 9, 3)) == longs{2, 5, 8});
  CHECK(s.run(arange(2, 8, 3)) == longs{2, 5});
  CHECK(s.run(arange(5, 0, -2)) == longs{5, 3, 1});
  CHECK(s.run(arange(5, 0)).size() == 0);
  CHECK(s.run(arange(0)).size() == 0);
  CHECK(s.run(arange(0.f, 1.f, 0.25f)) == floats{0, 0.25f, 0.5f, 0.75f});
  CHECK(s.run(arange<float>(1, -1, -0.5f)) == floats{1, 0.5f, 0, -0.5f});
  CHECK(s.run(arange(-2.5, 0.)) == ndarray<double, dyn>{-2.5, -1.5, -0.5});
  // More elements than one thread takes.
  const auto many = s.run(arange<float>(100'000));
  for (std::int64_t i = 0; i < many.size(); ++i) REQUIRE(many(i) == static_cast<float>(i));
}

TEST_CASE_FIXTURE(testing::own_graph, "numbers that follow each other, up to what a run computes") {
  session s;
  placeholder<float, dyn> x("x");
  placeholder<std::int64_t> a("a"), b("b"), c("c");
  placeholder<double> d("d");
  using longs = ndarray<std::int64_t, dyn>;
  CHECK(s.run(arange(size_of(x)), x = ndarray<float, dyn>{4, 4, 4}) == longs{0, 1, 2});
  CHECK(s.run(arange(size_of(x)), x = ndarray<float, dyn>{4}) == longs{0});
  CHECK(s.run(arange(a, b, c), a = 2, b = 9, c = 3) == longs{2, 5, 8});
  CHECK(s.run(arange(a, b, c), a = 2, b = 8, c = 3) == longs{2, 5});
  CHECK(s.run(arange(a, b, c), a = 5, b = 0, c = -2) == longs{5, 3, 1});
  CHECK(s.run(arange(a, b, c), a = 5, b = 1, c = -2) == longs{5, 3});
  CHECK(s.run(arange(a, b, c), a = 5, b = 5, c = 1).size() == 0);
  CHECK(s.run(arange(a, b, c), a = 5, b = 0, c = 1).size() == 0);
  CHECK(s.run(arange(d, 1, 0.25), d = 0.25) == ndarray<double, dyn>{0.25, 0.5, 0.75});
  const any_array two = s.run(arange(any_tensor(a), any_tensor(b)), a = 1, b = 3);
  CHECK(longs(two) == longs{1, 2});
}

TEST_CASE_FIXTURE(testing::own_graph, "errors of arange") {
  placeholder<std::int64_t> n("n"), step("step");
  session s;
  auto check = [](auto f, std::string_view text) {
    const std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
  };
  check([&] { s.run(arange(n), n = -1); },
        "[arange] the extent of axis 0 is -1, and must not be negative");
  const std::string_view no_steps = "[arange] the extent of axis 0 is -1, and must not be negative";
  for (std::int64_t last : {-1, 0, 1})
    check([&] { s.run(arange(0, n, step), n = last, step = 0); }, no_steps);
  placeholder<double> end("end"), by("by");
  for (double last : {-1., 0., 1.})
    check([&] { s.run(arange(0, end, by), end = last, by = 0); }, no_steps);
  check([&] { s.run(arange(0, end, by), end = std::nan(""), by = 1); }, no_steps);
  check([&] { arange(0, 5, 0); }, "[arange] the step is 0");
  check([&] { arange(0., 5., 0.); }, "[arange] the step is 0");
  check([&] { arange(0., std::nan("")); }, "[arange] expects numbers that steps of 1 lead from");
  // The dtype that is asked for is not another one's.
  check([&] { arange<double>(any_tensor(cast<float>(end)), 5); },
        "[arange] expects scalars of double, and got float()");
}
