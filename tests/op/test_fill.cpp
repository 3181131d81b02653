// SPDX-License-Identifier: Apache-2.0
#include <deft/op/fill.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::any;
using testing::maker;
using testing::type_of;

TEST_CASE_FIXTURE(testing::own_graph, "tensors of one value have the type that was asked for") {
  static_assert(std::is_same_v<decltype(zeros(shape<2, 3>)), tensor<float, 2, 3>>);
  static_assert(std::is_same_v<decltype(ones<double>(shape<3>)), tensor<double, 3>>);
  static_assert(std::is_same_v<decltype(zeros<bool>(shape<>)), tensor<bool>>);
  static_assert(std::is_same_v<decltype(fill(shape<2>, 7)), tensor<std::int32_t, 2>>);
  static_assert(std::is_same_v<decltype(fill(shape<2>, 7.5)), tensor<double, 2>>);
  static_assert(std::is_same_v<decltype(fill<float>(shape<2>, 7)), tensor<float, 2>>);
  static_assert(std::is_same_v<decltype(fill(shape<2>, constant(7.f))), tensor<float, 2>>);
  static_assert(std::is_same_v<decltype(zeros()), initializer>);
  placeholder<std::int64_t, dyn, 4> x("x");
  static_assert(std::is_same_v<decltype(zeros_like(x)), tensor<std::int64_t, dyn, 4>>);
  static_assert(std::is_same_v<decltype(ones_like(x * 2)), tensor<std::int64_t, dyn, 4>>);
  CHECK(type_of(zeros(dims{2, 3})) == "float(2,3)");
  CHECK(type_of(ones({4}, dtype::uint8)) == "uint8(4)");
  CHECK(type_of(fill({4}, 2.5)) == "double(4)");
  CHECK(type_of(zeros_like(any(dtype::int32, {dyn, 2}))) == "int32(?,2)");
}

TEST_CASE_FIXTURE(testing::own_graph, "tensors of one value have its elements") {
  session s;
  CHECK(s.run(zeros(shape<2, 2>)) == ndarray<float, 2, 2>{{0, 0}, {0, 0}});
  CHECK(s.run(ones<std::uint8_t>(shape<3>)) == ndarray<std::uint8_t, 3>{1, 1, 1});
  CHECK(s.run(fill(shape<2>, 2.5f)) == ndarray<float, 2>{2.5f, 2.5f});
  CHECK(s.run(fill(shape<>, true)));
  CHECK(s.run(zeros(shape<0, 3>)).size() == 0);
  placeholder<float, dyn, 2> x("x");
  const ndarray<float, dyn, 2> rows{{1, 2}, {3, 4}, {5, 6}};
  CHECK(s.run(zeros_like(x) - 1, x = rows) == ndarray<float, dyn, 2>{{-1, -1}, {-1, -1}, {-1, -1}});
  CHECK(s.run(ones_like(x), x = rows) == ndarray<float, dyn, 2>{{1, 1}, {1, 1}, {1, 1}});
  placeholder<float> v("v");
  CHECK(s.run(fill(shape<3>, v), v = 4.f) == ndarray<float, 3>{4, 4, 4});
}

TEST_CASE_FIXTURE(testing::own_graph, "a tensor of one value is a broadcast constant") {
  const tensor<float, 1000, 1000> z = zeros(shape<1000, 1000>);
  CHECK(maker(z).def->name == "broadcast_to");
  CHECK(same(any_tensor(z), any_tensor(zeros(shape<1000, 1000>))));
  placeholder<float, 2, 3> x("x");
  CHECK(same(any_tensor(zeros_like(x)), any_tensor(zeros(shape<2, 3>))));  // x need not be fed
}

TEST_CASE_FIXTURE(testing::own_graph, "tensors of one value have extents that a run computes") {
  session s;
  placeholder<float, dyn, 2> x("x");
  const auto rows = size_of(x, axis<0>);
  static_assert(std::is_same_v<decltype(zeros(shape<dyn, 3>, {rows})), tensor<float, dyn, 3>>);
  for (std::int64_t n : {3, 0, 1, 5}) {
    CAPTURE(n);
    const ndarray<float, dyn, 2> fed(any_array(dtype::float32, {n, 2}));
    const auto [z, o, f] = s.run(zeros(shape<dyn, 3>, {rows}), ones<bool>(shape<2, dyn>, {2, rows}),
                                 fill(shape<dyn>, {rows * 2}, 2.5f), x = fed);
    CHECK(z.extents() == dims{n, 3});
    CHECK(o.extents() == dims{2, n});
    CHECK(f.extents() == dims{2 * n});
    for (float e : z) CHECK(e == 0);
    for (bool e : o) CHECK(e);
    for (float e : f) CHECK(e == 2.5f);
  }
  CHECK(type_of(any_tensor(zeros(shape<dyn, 3>, {4}))) == "float(4,3)");
}

TEST_CASE_FIXTURE(testing::own_graph, "errors of tensors of one value") {
  placeholder<std::int32_t> n("n");
  session s;
  auto check = [](auto f, std::string_view text) {
    const std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
  };
  check([&] { s.run(zeros(shape<dyn>, {n}), n = -2); },
        "[zeros] the extent of axis 0 is -2, and must not be negative");
  check([&] { s.run(zeros(shape<dyn, 1'000'000>, {n}), n = 2'000'000'000); },
        "[zeros] the extent of axis 1 is 1000000, which makes more than");
  check([&] { s.run(ones(shape<2, 3>, {n, 3}), n = 4); }, "[broadcast_to] the shape (2,3) was");
  check([&] { zeros(shape<dyn>, {-1}); },
        "[zeros] the extent of axis 0 is -1, and must not be negative at test_fill.cpp:");
  // Constants are known when the call is written: its line is named all the same.
  check([&] { s.run(exp(zeros(shape<dyn>, {constant(std::int64_t{-1})}))); },
        "[zeros] the extent of axis 0 is -1, and must not be negative at test_fill.cpp:");
  check(
      [&] {
        zeros(shape<dyn, 3>, {n, 3, n});
      },
      "[zeros] expects the extents of (?,3) that are known only at run time, 1, or all of them, "
      "and got 3");
  check(
      [&] {
        fill(shape<dyn, 3>, {1, 4}, 0.f);
      },
      "[fill] the shape (?,3) was declared, and (1,4) was given");
  check([&] { fill(dims{2}, any(dtype::float32, {2})); }, "[fill] expects a scalar");
  check([&] { zeros({dyn}); },
        "[fill] (?) is not a valid shape: every extent must be known at test_fill.cpp:");
  constexpr std::int64_t large = std::int64_t{1} << 31;
  const std::string_view too_large = "an array of (2147483648,2147483648) is larger than memory";
  check(
      [&] {
        zeros(shape<dyn, dyn>, {constant(large), constant(large)});
      },
      ext::str("[zeros] ", too_large, " at test_fill.cpp:"));
  check([&] { zeros({large, large}); }, ext::str("[fill] ", too_large, " at test_fill.cpp:"));
  check(
      [&] {
        any_variable("w", dims{large, large}, zeros());
      },
      ext::str("[variable] ", too_large, ", node \"w\" at test_fill.cpp:"));
}
