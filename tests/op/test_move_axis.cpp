// SPDX-License-Identifier: Apache-2.0
// Types and errors of move_axis, swap_axes, squeeze, flatten, flip, roll, repeat, tile and pad's
// modes; cases/moves.txt has what they yield.
#include <deft/expr.hpp>
#include <deft/session/session.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::own_graph;
using testing::type_of;

namespace {

void check_error(auto f, std::string_view text) {
  const std::string e = testing::error_of(f);
  INFO(e);
  CHECK(e.starts_with("invalid_argument: " + std::string(text)));
}
template <class A, class B>
inline constexpr bool is = std::is_same_v<A, B>;

}  // namespace

TEST_CASE_FIXTURE(own_graph, "operations that move elements have the types of their results") {
  placeholder<float, 3, 1, 4> x("x");
  static_assert(is<decltype(squeeze(x)), tensor<float, 3, 4>>);
  static_assert(is<decltype(squeeze(x, axis<1>)), tensor<float, 3, 4>>);
  static_assert(is<decltype(flatten(x)), tensor<float, 12>>);
  static_assert(is<decltype(flatten(x, axis<1>)), tensor<float, 3, 4>>);
  static_assert(is<decltype(swap_axes(x, axis<0, -1>)), tensor<float, 4, 1, 3>>);
  static_assert(is<decltype(move_axis(x, axis<0>, axis<-1>)), tensor<float, 1, 4, 3>>);
  static_assert(is<decltype(flip(x)), tensor<float, 3, 1, 4>>);
  static_assert(is<decltype(flip(x * 2, axis<0>)), tensor<float, 3, 1, 4>>);
  static_assert(is<decltype(roll(x, 1, axis<0>)), tensor<float, 3, 1, 4>>);
  static_assert(is<decltype(roll(x, 1)), tensor<float, 3, 1, 4>>);
  static_assert(is<decltype(repeat<2>(x, axis<0>)), tensor<float, 6, 1, 4>>);
  static_assert(is<decltype(repeat(x, axis<0>, 2)), tensor<float, dyn, 1, 4>>);
  static_assert(is<decltype(tile(x, copies<2, 1, 3>)), tensor<float, 6, 1, 12>>);
  static_assert(is<decltype(tile(x, copies<5, 1, 2, 1>)), tensor<float, 5, 3, 2, 4>>);
  static_assert(is<decltype(pad(x, before<1, 0, 0>, after<0, 0, 2>, pad_mode::reflect)),
                   tensor<float, 4, 1, 6>>);
  const any_tensor a = x;
  CHECK(type_of(squeeze(a)) == "float(3,4)");
  CHECK(same(squeeze(a), squeeze(x)));
  CHECK(type_of(squeeze(any(dtype::int32, {1, dyn}))) == "int32(?)");
  CHECK(type_of(tile(any(dtype::int32, {dyn, 2}), {2, 2})) == "int32(?,4)");
  CHECK(same(any_tensor(flip(x, axis<0>)), x(range(all, all, -1))));
  check_error([&] { squeeze(a, axes{0}); }, "[squeeze] expects axes of extent 1, each once");
  check_error(
      [&] {
        pad(a, {3, 0, 0}, {0, 0, 0}, pad_mode::reflect);
      },
      "[pad] axis 0 of (3,1,4) has too few elements for 3 on one side");
  session s;
  placeholder<std::int32_t> n("n");
  placeholder<float, dyn> y("y");
  for (const int by : {0, 1, -1, 2, 7, -8}) {
    CAPTURE(by);
    const auto got = s.run(roll(y, n, axis<0>), y = {0, 1, 2}, n = by);
    for (std::int64_t k = 0; k < 3; ++k)
      CHECK(got(k) == static_cast<float>((((k - by) % 3) + 3) % 3));
  }
  CHECK(s.run(roll(y, n, axis<0>), y = ndarray<float, 0>(), n = 2).extents() == dims{0});
  const auto moved = s.run(roll(constant({{1, 2}, {3, 4}}), 1));
  CHECK(moved == ndarray<int, 2, 2>{{4, 1}, {2, 3}});
  check_error(
      [&] {
        s.run(pad(y, {3}, {0}, pad_mode::reflect), y = {0, 1, 2});
      },
      "[slice] (3) has no part of size (3) at (1)");
}
