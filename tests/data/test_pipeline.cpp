// SPDX-License-Identifier: Apache-2.0
// tests/data/test_pipeline.cpp: datasets shuffle, batch, repeat and split as in tf.data.
#include <deft/data/pipeline.hpp>
// its own header comes first, to check that it is self-contained
#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "../testing.hpp"

using namespace deft;
using numbers = std::vector<int>;

/// Elements 0 to n - 1.
static auto count_to(std::int64_t n) {
  ndarray<std::int32_t, dyn> a(n);
  std::iota(a.begin(), a.end(), 0);
  return from_slices(std::move(a));
}

/// All numbers of a pass; -1 ends a batch.
template <class Dataset>
static numbers pass(const Dataset& d) {
  numbers out;
  for (auto& [a] : d) {
    out.insert(out.end(), a.begin(), a.end());
    if constexpr (std::remove_reference_t<decltype(a)>::rank() == 1) out.push_back(-1);
  }
  return out;
}
static numbers sorted(numbers v) {
  std::sort(v.begin(), v.end());
  return v;
}

TEST_CASE("elements are the rows of every array, batches have one more leading extent") {
  ndarray<float, dyn, 2> x(3);
  std::iota(x.begin(), x.end(), 0.f);
  ndarray<std::int32_t, 3> y{5, 6, 7};
  auto data = from_slices(x, y);
  static_assert(std::is_same_v<decltype(data), dataset<ndarray<float, 2>, ndarray<std::int32_t>>>);
  CHECK(data.cardinality() == 3);
  int i = 0;
  for (auto& [row, label] : data) {
    CHECK(row == ndarray<float, 2>{2.f * static_cast<float>(i), 2.f * static_cast<float>(i) + 1});
    CHECK(label() == 5 + i++);
  }
  CHECK(i == 3);
  auto batches = data.batch(2);
  static_assert(std::is_same_v<decltype(batches)::value_type,
                               std::tuple<ndarray<float, dyn, 2>, ndarray<std::int32_t, dyn>>>);
  std::vector<std::string> seen;
  for (auto& [rows, labels] : batches)
    seen.push_back(to_string(rows.extents()) + to_string(labels));
  CHECK(seen == std::vector<std::string>{"(2,2)[5 6]", "(1,2)[7]"});
}

TEST_CASE("arrays of different length are refused") {
  ndarray<float, dyn, 2> x(3);
  ndarray<std::int32_t, dyn> y(4);
  CHECK(testing::error_of([&] { from_slices(x, y); }) ==
        "invalid_argument: [from_slices] leading extents differ: (3,2), (4)");
}

TEST_CASE("batch keeps the remainder by default") {
  CHECK(pass(count_to(5).batch(2)) == numbers{0, 1, -1, 2, 3, -1, 4, -1});
  CHECK(pass(count_to(5).batch(2, true)) == numbers{0, 1, -1, 2, 3, -1});
  CHECK(pass(count_to(4).batch(2)) == numbers{0, 1, -1, 2, 3, -1});
  CHECK(pass(count_to(2).batch(9)) == numbers{0, 1, -1});
  CHECK(pass(count_to(0).batch(9)) == numbers{});
}

TEST_CASE("take, skip, shard and repeat choose elements or batches") {
  CHECK(pass(count_to(5).take(2)) == numbers{0, 1});
  CHECK(pass(count_to(5).take(0)) == numbers{});
  CHECK(pass(count_to(5).take(-1)) == numbers{0, 1, 2, 3, 4});
  CHECK(pass(count_to(5).take(9)) == numbers{0, 1, 2, 3, 4});
  CHECK(pass(count_to(5).skip(3)) == numbers{3, 4});
  CHECK(pass(count_to(5).skip(-1)) == numbers{});
  CHECK(pass(count_to(5).skip(9)) == numbers{});
  CHECK(pass(count_to(7).shard(3, 0)) == numbers{0, 3, 6});
  CHECK(pass(count_to(7).shard(3, 2)) == numbers{2, 5});
  CHECK(pass(count_to(7).shard(9, 8)) == numbers{});
  CHECK(pass(count_to(2).repeat(3)) == numbers{0, 1, 0, 1, 0, 1});
  CHECK(pass(count_to(2).repeat(0)) == numbers{});
  CHECK(pass(count_to(0).repeat()) == numbers{});
  CHECK(pass(count_to(9).take(0).repeat()) == numbers{});
  CHECK(pass(count_to(3).repeat().take(7)) == numbers{0, 1, 2, 0, 1, 2, 0});
  CHECK(pass(count_to(3).repeat(2).repeat(2)) == numbers{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
  CHECK(pass(count_to(3).repeat(2).batch(4)) == numbers{0, 1, 2, 0, -1, 1, 2, -1});
  CHECK(pass(count_to(3).batch(2).repeat(2)) == numbers{0, 1, -1, 2, -1, 0, 1, -1, 2, -1});
  CHECK(pass(count_to(9).skip(1).shard(2, 1).take(2).repeat(2)) == numbers{2, 4, 2, 4});
  CHECK(pass(count_to(9).batch(2).skip(1).take(1)) == numbers{2, 3, -1});
}

TEST_CASE("cardinality is the number of elements of a pass") {
  auto all = count_to(10);
  for (const auto& d : {all, all.take(3), all.skip(4), all.skip(40), all.shard(3, 0),
                        all.shard(3, 2), all.repeat(3), all.repeat(0), all.shuffle(3, 1),
                        all.repeat().take(15), all.repeat().shard(3, 1).take(4), all.take(0)})
    CHECK(d.cardinality() == static_cast<std::int64_t>(pass(d).size()));
  CHECK(all.repeat().cardinality() == -1);
  CHECK(all.repeat().skip(7).shard(2, 1).batch(3).cardinality() == -1);
  CHECK(all.batch(3).cardinality() == 4);
  CHECK(all.batch(3, true).cardinality() == 3);
  CHECK(all.take(0).repeat().cardinality() == 0);
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(all.repeat(most).cardinality() == most);
  CHECK(all.repeat(most / 10).cardinality() == most / 10 * 10);
  CHECK(all.repeat(most).take(15).cardinality() == 15);
}

TEST_CASE("a seed decides the order of every pass, and each pass has its own") {
  const numbers all = pass(count_to(100));
  auto a = count_to(100).shuffle(100, 7), b = count_to(100).shuffle(100, 7);
  numbers first = pass(a), second = pass(a);
  CHECK(sorted(first) == all);
  CHECK(sorted(second) == all);
  CHECK(first != all);
  CHECK(first != second);
  CHECK(pass(b) == first);
  CHECK(pass(b) == second);
  CHECK(pass(count_to(100).shuffle(100, 8)) != first);

  numbers twice = pass(count_to(100).shuffle(100, 7).repeat(2));
  CHECK(numbers(twice.begin(), twice.begin() + 100) == first);
  CHECK(numbers(twice.begin() + 100, twice.end()) == second);

  numbers same = pass(count_to(100).shuffle(100, 7, false).repeat(2));
  CHECK(numbers(same.begin(), same.begin() + 100) == numbers(same.begin() + 100, same.end()));
}

TEST_CASE("shuffling without a seed differs from dataset to dataset") {
  CHECK(pass(count_to(1000).shuffle(1000)) != pass(count_to(1000).shuffle(1000)));
}

TEST_CASE("an element leaves a small buffer no earlier than the buffer allows") {
  numbers order = pass(count_to(1000).shuffle(10, 3));
  CHECK(sorted(order) == pass(count_to(1000)));
  for (int i = 0; i < 1000; ++i) CHECK(order[static_cast<std::size_t>(i)] < i + 10);
  CHECK(pass(count_to(5).shuffle(1, 3)) == numbers{0, 1, 2, 3, 4});
}

TEST_CASE("a full shuffle puts every element at every position about as often") {
  int first[4] = {}, last[4] = {};
  auto d = count_to(4).shuffle(4, 11);
  for (int i = 0; i < 4000; ++i) {
    numbers p = pass(d);
    ++first[p[0]];
    ++last[p[3]];
  }
  for (int c : first) CHECK(c == doctest::Approx(1000).epsilon(0.12));
  for (int c : last) CHECK(c == doctest::Approx(1000).epsilon(0.12));
}

TEST_CASE("batches are shuffled whole") {
  numbers p = pass(count_to(6).batch(2).shuffle(10, 5));
  std::set<numbers> groups;
  for (std::size_t i = 0; i < p.size(); i += 3)
    groups.insert(numbers(p.begin() + static_cast<std::ptrdiff_t>(i),
                          p.begin() + static_cast<std::ptrdiff_t>(i) + 3));
  CHECK(groups == std::set<numbers>{{0, 1, -1}, {2, 3, -1}, {4, 5, -1}});
}

TEST_CASE("the next batch is written into the same memory, unless that is shared") {
  std::set<const void*> places;
  for (auto& [a] : count_to(10).batch(4).repeat(20)) places.insert(a.data());
  CHECK(places.size() == 1);

  std::vector<any_array> held;
  for (auto& [a] : count_to(6).batch(2)) held.push_back(std::as_const(a).array());
  REQUIRE(held.size() == 3);
  for (int i = 0; i < 3; ++i)
    CHECK(held[static_cast<std::size_t>(i)] == ndarray<std::int32_t, 2>{2 * i, 2 * i + 1}.array());

  std::vector<ndarray<std::int32_t, dyn>> moved;
  for (auto& [a] : count_to(4).batch(2)) moved.push_back(std::move(a));
  CHECK(moved[0] == ndarray<std::int32_t, dyn>{0, 1});
  CHECK(moved[1] == ndarray<std::int32_t, dyn>{2, 3});
}

TEST_CASE("a dataset outlives what it was made from, and passes do not disturb each other") {
  auto d = [] {
    auto whole = count_to(3);
    return whole.repeat(2).batch(2);
  }();
  auto i = d.begin(), j = d.begin();
  ++i;
  CHECK(std::get<0>(*i) == ndarray<std::int32_t, dyn>{2, 0});
  CHECK(std::get<0>(*j) == ndarray<std::int32_t, dyn>{0, 1});
  ++i, ++i;
  CHECK(i == d.end());
  CHECK(j != d.end());
}

TEST_CASE("invalid arguments are refused") {
  auto d = count_to(3);
  auto code = [](auto f) { return testing::error_of(f).substr(0, 26); };
  CHECK(code([&] { d.batch(0); }) == "invalid_argument: [batch] ");
  CHECK(code([&] { d.shuffle(0); }) == "invalid_argument: [shuffle");
  CHECK(code([&] { d.repeat(-2); }) == "invalid_argument: [repeat]");
  CHECK(code([&] { d.take(-2); }) == "invalid_argument: [take] e");
  CHECK(code([&] { d.skip(-2); }) == "invalid_argument: [skip] e");
  CHECK(testing::error_of([&] { d.shard(2, 2); }) ==
        "invalid_argument: [shard] expects an index in [0, num), got index 2 and num 2");
  CHECK(code([&] { d.prefetch(0); }) == "invalid_argument: [prefetc");
  CHECK(code([&] { d.map([](auto&) { return 1; }, {.threads = -1}); }) ==
        "invalid_argument: [map] ex");
  CHECK(code([&] { d.interleave([&](auto&) { return d; }, 0); }) == "invalid_argument: [interle");
  CHECK(testing::error_of([] {
          from_slices(numbers{1}, numbers{1, 2});
        }) == "invalid_argument: [from_slices] the sizes of the vectors differ: 1, 2");
  CHECK(testing::error_of([] { from_slices(any_array::scalar(1.f)); }) ==
        "invalid_argument: [from_slices] a scalar has no rows");
}
