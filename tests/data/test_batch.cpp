// SPDX-License-Identifier: Apache-2.0
// tests/data/test_batch.cpp: batches of numbers, arrays, tuples and anything else.
#include <deft/data/pipeline.hpp>
// its own header comes first, to check that it is self-contained
#include <set>
#include <string>

#include "../testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

auto count_to(int n) {
  return from_generator([i = 0, n]() mutable { return i < n ? std::optional(i++) : std::nullopt; });
}

}  // namespace

TEST_CASE("a batch has one more extent than its elements, whatever made them") {
  auto d = count_to(5).map([](int n) {
    const auto f = static_cast<float>(n);
    return std::tuple(f, ndarray<float, 2>{f, -f}, any_array::scalar(n), n % 2 == 0, str(n),
                      std::tuple(n, ndarray<std::int32_t, dyn>{n}));
  });
  auto batches = d.batch(2);
  static_assert(std::is_same_v<
                decltype(batches),
                dataset<ndarray<float, dyn>, ndarray<float, dyn, 2>, any_array, ndarray<bool, dyn>,
                        std::vector<std::string>,
                        std::tuple<ndarray<std::int32_t, dyn>, ndarray<std::int32_t, dyn, dyn>>>>);
  std::vector<std::string> seen;
  for (auto& [number, array, any, even, text, both] : batches)
    seen.push_back(str(number, array, any, even, join(text, "+"), std::get<0>(both),
                       std::get<1>(both).extents()));
  CHECK(seen.size() == 3);
  CHECK(seen[1] == "[2. 3.][[ 2. -2.]\n [ 3. -3.]][2 3][ True False]2+3[2 3](2,1)");
  CHECK(seen[2] == "[4.][[ 4. -4.]][4][ True]4[4](1,1)");
}

TEST_CASE("batches of rows can be batched again") {
  ndarray<std::int32_t, 6> x{0, 1, 2, 3, 4, 5};
  for (auto& [a] : from_slices(x).batch(2).batch(3)) {
    static_assert(std::is_same_v<decltype(a), ndarray<std::int32_t, dyn, dyn>>);
    CHECK(std::as_const(a).array() == ndarray<std::int32_t, 3, 2>{0, 1, 2, 3, 4, 5}.array());
  }
  CHECK(testing::error_of([&] {
          for (auto& [a] : from_slices(x).batch(4).batch(2)) static_cast<void>(a);
        }) ==
        "invalid_argument: [batch] expects elements of one dtype and shape, got int32(4) and "
        "int32(2)");
}

TEST_CASE("elements of unequal shape or dtype are refused with both") {
  auto growing = count_to(3).map([](int n) { return ndarray<float, dyn, 2>(1 + n / 2); });
  CHECK(testing::error_of([&] {
          for (auto& [a] : growing.batch(3)) static_cast<void>(a);
        }) ==
        "invalid_argument: [batch] expects elements of one dtype and shape, got float(1,2) "
        "and float(2,2)");
  auto mixed = count_to(2).map(
      [](int n) { return n ? any_array::scalar(1.f) : any_array::scalar(std::int64_t{1}); });
  CHECK(testing::error_of([&] {
          for (auto& [a] : mixed.batch(2)) static_cast<void>(a);
        }).ends_with("got int64() and float()"));
  int batches = 0;
  for (auto& [a] : growing.batch(2)) batches += a.extent(0) == 2 || a.extent(1) == 2;
  CHECK(batches == 2);
}

TEST_CASE("large and empty batches") {
  auto rows = [](auto d) {
    std::vector<std::int64_t> n;
    for (auto& [a] : d) n.push_back(a.extent(0));
    return n;
  };
  using sizes = std::vector<std::int64_t>;
  CHECK(rows(count_to(1000).batch(std::int64_t{1} << 60)) == sizes{1000});
  CHECK(rows(count_to(1000).batch(700)) == sizes{700, 300});
  CHECK(rows(count_to(1000).batch(700, true)) == sizes{700});
  CHECK(rows(count_to(0).batch(700)) == sizes{});
  CHECK(rows(count_to(3).map([](int) { return ndarray<float, dyn>(0); }).batch(2)) == sizes{2, 1});
  std::int64_t sum = 0;
  for (auto& [a] : count_to(1000).batch(1000))
    for (int n : a) sum += n;
  CHECK(sum == 499'500);
}

TEST_CASE("the next batch is written into the same memory, unless that is shared") {
  std::set<const void*> places;
  for (auto& [a] : count_to(10).batch(4).repeat(20)) places.insert(a.data());
  CHECK(places.size() == 1);
  std::vector<any_array> held;
  for (auto& [a] : count_to(6).batch(2)) held.push_back(std::as_const(a).array());
  for (int i = 0; i < 3; ++i)
    CHECK(held[static_cast<std::size_t>(i)] == ndarray<std::int32_t, 2>{2 * i, 2 * i + 1}.array());
}
