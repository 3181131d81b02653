// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <deft/core/ndarray.hpp>
#include <numeric>
#include <span>
#include <sstream>
#include <vector>

#include "testing.hpp"

using namespace deft;

TEST_CASE("a static array starts with zeros, a dyn one empty") {
  ndarray<float, 2, 3> a;
  CHECK(a.extents() == dims{2, 3});
  CHECK(std::accumulate(a.begin(), a.end(), 0.f) == 0);
  CHECK(a.size() == 6);
  CHECK(ndarray<float, dyn, 3>().extents() == dims{0, 3});
  CHECK(ndarray<float, dyn, 3>(5).extents() == dims{5, 3});
  CHECK(ndarray<float, dyn, 4, dyn>(2, 3).extents() == dims{2, 4, 3});
  CHECK(ndarray<float, dyn, 3>(5, 3).extents() == dims{5, 3});
  CHECK(testing::error_of([] { ndarray<float, dyn, 3>(5, 4); }) ==
        "invalid_argument: an ndarray of (?,3) cannot have the extents (5,4)");
}

TEST_CASE("a list gives the elements, and one dyn extent is deduced") {
  ndarray<int, 2, 2> a{1, 2, 3, 4};
  CHECK(a(1, 0) == 3);
  CHECK(ndarray<int, dyn, 2>{1, 2, 3, 4, 5, 6}.extents() == dims{3, 2});
  CHECK(ndarray<int, dyn>{}.size() == 0);
  CHECK(testing::error_of([] {
          ndarray<int, 2, 2>{1, 2, 3};
        }) == "invalid_argument: an ndarray of (2,2) cannot hold 3 elements");
  CHECK(testing::error_of([] {
          ndarray<int, dyn, 2>{1, 2, 3};
        }) ==
        "invalid_argument: an ndarray of (?,2) cannot hold 3 elements; extents go in parentheses, "
        "without braces: ndarray<float, dyn, 3> a(4)");
}

TEST_CASE("nested lists give the rows") {
  const ndarray<int, 2, 3> a{{1, 2, 3}, {4, 5, 6}};
  CHECK(a == ndarray<int, 2, 3>{1, 2, 3, 4, 5, 6});
  const ndarray<int, dyn, 2> rows = {{1, 2}, {3, 4}, {5, 6}};
  CHECK(rows.extents() == dims{3, 2});
  CHECK(rows(2, 0) == 5);
  const ndarray<int, 2, dyn, 2> deep{{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}};
  CHECK(deep.extents() == dims{2, 3, 2});
  CHECK(deep(1, 0, 1) == 8);
}

TEST_CASE("an ndarray converts to one whose extents are dyn, without a copy") {
  ndarray<int, 2, 3> a{1, 2, 3, 4, 5, 6};
  const int* elements = std::as_const(a).data();
  const ndarray<int, dyn, 3> b = std::move(a);
  CHECK(b.data() == elements);
  const ndarray<int, dyn, dyn> c = b;
  CHECK(c.extents() == dims{2, 3});
  CHECK(c.data() != elements);
}

TEST_CASE("elements are stored in row-major order") {
  ndarray<int, 2, 3, 4> a;
  int next = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) a(i, j, k) = next++;
  for (int i = 0; i < 24; ++i) CHECK(a.data()[i] == i);
  CHECK(a.extent(2) == 4);
}

TEST_CASE("a scalar has rank 0 and one element") {
  ndarray<float> a(2.5f);
  CHECK(a.rank() == 0);
  CHECK(a.size() == 1);
  CHECK(a() == 2.5f);
  CHECK(to_string(a) == "2.5");
}

TEST_CASE("a copy has separate elements, a move takes them over") {
  ndarray<int, 2> a{1, 2};
  auto b = a;
  b(0) = 9;
  CHECK(a(0) == 1);

  const int* at = std::as_const(a).data();
  auto moved = std::move(a);
  CHECK(std::as_const(moved).data() == at);

  b = moved;
  b(1) = 9;
  CHECK(moved(1) == 2);
}

TEST_CASE("a view reads the caller's memory and copies before it writes") {
  float mine[4] = {1, 2, 3, 4};
  auto v = ndarray<float, dyn, 2>::view(mine, 2);
  CHECK(v.extents() == dims{2, 2});
  CHECK(std::as_const(v).data() == mine);
  CHECK(ndarray<float, dyn, 2>::view(mine, 2, 2) == v);

  v(0, 0) = 7;
  CHECK(mine[0] == 1);
  CHECK(v(0, 0) == 7);
  CHECK(v(1, 1) == 4);

  const auto same = view(mine, 2, 2);
  static_assert(std::is_same_v<decltype(same), const ndarray<float, dyn, dyn>>);
  CHECK(same.data() == mine);
  CHECK(same(1, 0) == 3);
  CHECK(testing::error_of([&] { ndarray<float, dyn, 2>::view(mine, 1, 4); }) ==
        "invalid_argument: an ndarray of (?,2) cannot have the extents (1,4)");
}

TEST_CASE("an any_array becomes an ndarray without a copy, and is checked") {
  auto any = any_array::scalar(1.f);
  CHECK(testing::error_of([&] { ndarray<int>{any}; }) ==
        "invalid_argument: an array of float() is not an ndarray of int32()");
  CHECK(testing::error_of([&] { ndarray<float, dyn>{any}; }) ==
        "invalid_argument: an array of float() is not an ndarray of float(?)");

  any_array pair(dtype::float32, {2});
  pair.mutable_data<float>()[0] = 1;
  pair.mutable_data<float>()[1] = 2;
  const void* at = pair.raw();
  ndarray<float, dyn> alone(std::move(pair));
  CHECK(std::as_const(alone).data() == at);
  alone(0) = 5;
  CHECK(std::as_const(alone).data() == at);
}

TEST_CASE("writing to an ndarray made from a shared any_array does not change the other holder") {
  any_array shared(dtype::float32, {1});
  shared.mutable_data<float>()[0] = 1;
  ndarray<float, 1> a(shared);
  a(0) = 5;
  CHECK(shared.data<float>()[0] == 1);
  CHECK(a(0) == 5);
}

TEST_CASE("array() shares the elements, and moves them out of a temporary") {
  ndarray<float, 2> a{1, 2};
  any_array shared = a.array();
  CHECK(shared.raw() == std::as_const(a).data());
  any_array taken = std::move(a).array();
  CHECK(taken.raw() == shared.raw());
  CHECK(taken.shape() == dims{2});
  ndarray<float, dyn> b{1, 2};
  const any_array gone = std::move(b).array();
  CHECK(b.extent(0) == 0);
}

TEST_CASE("an array that was written to and is shared is not written to again") {
  ndarray<float, 2> a{1, 2};
  a(0) = 3;
  const any_array shared = a.array();
  a(0) = 4;
  CHECK(shared.data<float>()[0] == 3);
  ndarray<float, 2> moved = std::move(a);
  const any_array again = moved.array();
  moved(1) = 5;
  CHECK(again.data<float>()[1] == 2);
  std::vector<ndarray<float, 2>> two(2, moved);
  two[0](1) = 6;
  CHECK(two[1](1) == 5);
  std::swap(two[0], two[1]);
  CHECK(two[1](1) == 6);
}

TEST_CASE("arrays compare, iterate and stream") {
  ndarray<int, 3> a{1, 2, 3};
  CHECK(a == ndarray<int, 3>{1, 2, 3});
  CHECK_FALSE(a == ndarray<int, 3>{1, 2, 4});
  int sum = 0;
  for (int v : std::as_const(a)) sum += v;
  CHECK(sum == 6);
  std::ostringstream out;
  out << a;
  CHECK(out.str() == "[1 2 3]");
}

TEST_CASE("arrays compare whichever of them knows its extents") {
  const ndarray<float, 2, 2> a{1, 2, 3, 4};
  const ndarray<float, dyn, 2> b{1, 2, 3, 4}, c{1, 2, 3, 4, 5, 6};
  const ndarray<float, 2, dyn> d = ndarray<float, 2, 2>{1, 2, 3, 5};
  CHECK(a == b);
  CHECK(b == a);
  CHECK(a != c);
  CHECK(d != b);
  CHECK_FALSE(d == a);
}

TEST_CASE("a vector, array or span becomes an ndarray") {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  CHECK(ndarray<float, dyn>(values) == ndarray<float, dyn>{1, 2, 3, 4, 5, 6});
  CHECK(ndarray<float, dyn, 3>(values) == ndarray<float, 2, 3>{{1, 2, 3}, {4, 5, 6}});
  CHECK(ndarray<int, 2>(std::array{1, 2})(1) == 2);
  CHECK(ndarray<float, dyn>(std::span(values).first(2)).size() == 2);
  CHECK(ndarray<bool, dyn>(std::vector<bool>{true, false})(0));
  CHECK(testing::error_of([&] { ndarray<float, dyn, 4>{values}; }) ==
        "invalid_argument: an ndarray of (?,4) cannot hold 6 elements; extents go in parentheses, "
        "without braces: ndarray<float, dyn, 3> a(4)");
  static_assert(!std::is_constructible_v<ndarray<float, dyn>, std::vector<double>>);
}

TEST_CASE("ndarrays and any_arrays convert to each other") {
  ndarray<float, dyn> v{1, 2};
  any_array a = v;  // shares the elements until one of them is written
  CHECK(a.raw() == std::as_const(v).data());
  v(0) = 5;
  CHECK(a.data<float>()[0] == 1);
  CHECK(v != a);
  v = a;
  CHECK(v == a);
  CHECK(a == v);
  const ndarray<float, 2> back = a;
  CHECK(back(1) == 2);
  CHECK(testing::error_of([&] { v = any_array(dtype::int32, {2}); }) ==
        "invalid_argument: an array of int32(2) is not an ndarray of float(?)");
  const float* elements = std::as_const(v).data();
  a = std::move(v);
  CHECK(a.raw() == elements);
}

TEST_CASE("elements are written where they are until others share them") {
  ndarray<int, dyn, dyn> m(2, 3);
  for (int round = 0; round < 2; ++round) {
    const any_array before = m;
    for (int i = 0; i < m.extent(0); ++i)
      for (int j = 0; j < m.extent(1); ++j) m(i, j) += 10 * i + j;
    CHECK(before.data<int>()[5] == 12 * round);
    CHECK(m(1, 2) == 12 * (round + 1));
    CHECK(std::as_const(m)(1, 2) == 12 * (round + 1));
  }
  ndarray<int, dyn, dyn> other = std::move(m);
  other(0, 0) = 1;
  CHECK(other.extent(1) == 3);
  other = ndarray<int, dyn, dyn>(1, 2);
  other(0, 1) = 7;
  CHECK(other == ndarray<int, 1, 2>{{0, 7}});
}
